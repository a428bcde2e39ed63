package shared_test

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/measure/measuretest"
	"github.com/stintgo/stint/bench/shared"
)

// The test binary is the processes that the suite starts.
func TestMain(m *testing.M) {
	shared.Worker()
	os.Exit(m.Run())
}

// Redis is left to make bench-once, which installs it.
func TestEveryOtherSubjectRunsOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var cases []measure.Case
	for _, c := range new(shared.Systems).Cases() {
		var subjects []measure.Subject
		for _, s := range c.Subjects {
			if !strings.Contains(s.Name, "Redis") {
				subjects = append(subjects, s)
			}
		}
		c.Subjects = subjects
		cases = append(cases, c)
	}
	measuretest.Run(t, cases)
}

// A system that lets more in than there are slots would be quick.
func TestEverySystemKeepsItsLimit(t *testing.T) {
	const slots, rounds = 3, 50
	limits, err := shared.Limits(t.TempDir(), slots, 16)
	if err != nil {
		t.Fatal(err)
	}
	for name, callers := range limits {
		t.Run(name, func(t *testing.T) {
			var inside atomic.Int64
			var all sync.WaitGroup
			for _, c := range callers {
				all.Go(func() {
					for range rounds {
						err := c.Hold(func() {
							if n := inside.Add(1); n > slots {
								t.Errorf("%d have one of %d slots", n, slots)
							}
							runtime.Gosched()
							inside.Add(-1)
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
