package run_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/retry"
)

// A gate looks at the machine for one job at a time, when the job before has been started.
func TestGates_AfterStart(t *testing.T) {
	var words []string
	for n := range 64 {
		words = append(words, strconv.Itoa(n))
	}
	command, err := run.NewCommand([]string{"true"}, run.CommandConfig{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var looks, starts atomic.Int64
	o := run.Do(&run.Config{
		Command: command, Source: run.Source{Lists: []input.Group{{words}}},
		Jobs: len(words), Lookahead: len(words), Retry: retry.Policy{Attempts: 1}, KillAfter: time.Second,
		Gates: []gate.Check{func() (bool, error) {
			if looks, starts := looks.Add(1)-1, starts.Load(); looks != starts {
				t.Errorf("look %d after %d starts", looks+1, starts)
			}
			return true, nil
		}},
		Sink: output.NewSink(out, out, nil, [2]bool{}), Spool: output.NewSpool(dir), Meter: &progress.Meter{},
		Trace: true, Say: func(string) {
			for range 100 {
				runtime.Gosched() // to jobs that have passed too early
			}
			starts.Add(1)
		},
	})
	if o.Err != nil || o.Failed > 0 || int(looks.Load()) != len(words) {
		t.Errorf("%+v after %d looks", o, looks.Load())
	}
}
