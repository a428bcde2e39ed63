package backlog_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// orderAfter is the order of two keys, after a number of heavy starts of a third one of which some
// entries wait all the time.
func orderAfter(starts, waiting int) (order string) {
	const heavy = math.MaxInt32
	b := backlog.New[string](backlog.Config{Max: heavy})
	push := func(key string, n int) {
		for range n {
			b.Push(&backlog.Entry[string]{Value: key}, backlog.Arrival{Tier: 3, Key: key, Weight: heavy})
		}
	}
	start := func() string {
		e := b.Peek(0)
		b.Start(e)
		b.Keys().Finish(e.Value)
		return e.Value
	}
	push("early", waiting)
	for range starts {
		push("early", 1)
		start()
	}
	push("many", 4)
	push("few", 2)
	for b.Len() > 0 {
		order += start() + " "
	}
	return order
}

// Virtual time does not overflow, however heavy the entries are and however many start: keys still
// take turns.
func TestA5_KeysTakeTurnsAfterManyHeavyStarts(t *testing.T) {
	for _, waiting := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			want := orderAfter(100, waiting)
			for starts := 4000; starts < 9000; starts += 100 {
				if order := orderAfter(starts, waiting); order != want {
					t.Fatalf("after %d starts the order is %q, after 100 it is %q", starts, order, want)
				}
			}
		})
	}
}
