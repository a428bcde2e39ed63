package limiter

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

// plenty is a rate that is never reached, so that every try succeeds.
const plenty = 1_000_000_000

func try(goroutines int, ratioUber float64) measure.Case {
	callers := "one goroutine"
	if goroutines > 1 {
		callers = fmt.Sprintf("%d goroutines", goroutines)
	}
	return measure.Case{
		Name: "try that succeeds, " + callers,
		Ours: ours,
		Goals: []string{
			fmt.Sprintf("time ≤ %v× %s", ratioUber, uber),
			"time ≤ 0.35× " + xtime,
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: "clock read (floor)", Loop: shared(goroutines, tryClock)},
			{Name: "own compare-and-swap (floor)", Loop: shared(goroutines, tryCAS)},
			{Name: ours, Loop: shared(goroutines, tryStint)},
			{Name: uber, Loop: shared(goroutines, tryUber)},
			{Name: xtime, Loop: shared(goroutines, tryXTime)},
		},
	}
}

// shared has goroutines share one loop's work. With one goroutine, the caller does it.
func shared(goroutines int, prepare func() measure.Loop) func(*measure.Stage) measure.Loop {
	return func(*measure.Stage) measure.Loop {
		loop := prepare()
		if goroutines == 1 {
			return loop
		}
		return func(n int) int {
			return measure.Spread(n, goroutines, func(_, share int) int { return loop(share) })
		}
	}
}

// tryClock only reads the clock, as each limiter without a ticking goroutine must.
func tryClock() measure.Loop {
	start := measure.Now()
	return func(n int) int {
		done := 0
		for range n {
			if measure.Since(start) >= 0 {
				done++
			}
		}
		return done
	}
}

// tryCAS is only a bucket: one word, no tiers, no waiting.
func tryCAS() measure.Loop {
	b := newWord(plenty, plenty)
	return func(n int) int {
		done := 0
		for range n {
			if b.try() {
				done++
			}
		}
		return done
	}
}

func tryStint() measure.Loop {
	l := bucket(plenty, plenty)
	return func(n int) int {
		done := 0
		for range n {
			if l.Try(1) {
				done++
			}
		}
		return done
	}
}

// tryUber calls Take, because that limiter has no try; at this rate no Take
// has to wait.
func tryUber() measure.Loop {
	l := ratelimit.New(plenty)
	return func(n int) int {
		done := 0
		for range n {
			if !l.Take().IsZero() {
				done++
			}
		}
		return done
	}
}

func tryXTime() measure.Loop {
	l := rate.NewLimiter(plenty, plenty)
	return func(n int) int {
		done := 0
		for range n {
			if l.Allow() {
				done++
			}
		}
		return done
	}
}

// word is the generic cell rate algorithm (ITU-T I.371) on one word: the time
// at which the bucket would be full again.
type word struct {
	fullAt atomic.Int64
	start  time.Time
	cost   int64 // nanoseconds that one token takes
	depth  int64 // nanoseconds that a full bucket holds
}

func newWord(perSecond, burst int64) *word {
	cost := int64(time.Second) / perSecond
	return &word{start: measure.Now(), cost: cost, depth: cost * burst}
}

func (w *word) try() bool {
	for {
		fullAt := w.fullAt.Load()
		now := int64(measure.Since(w.start))
		next := max(fullAt, now) + w.cost
		if next > now+w.depth {
			return false
		}
		if w.fullAt.CompareAndSwap(fullAt, next) {
			return true
		}
	}
}
