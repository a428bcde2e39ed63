package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

const (
	busyRate   = 100_000  // tokens per second
	busyBurst  = 100      // one millisecond's worth, for waiters
	aboveBurst = busyRate // one second's worth, as is the default of many
	passed     = "share of the allowance"
)

// neverAbove checks the promise of a limiter: over any time, at most the rate
// times that time, and the burst once. The bucket is large, because a small one
// could not hold the tokens that a limiter with a wrong order of times earns twice.
func neverAbove() measure.Case {
	return measure.Case{
		Name:     "64 goroutines try without pause at 100 k/s, burst 100,000",
		Ours:     ours,
		Readings: []measure.Reading{{Name: passed, Unit: "%"}},
		Goals:    []string{passed + " ≤ 100 %"},
		Subjects: []measure.Subject{
			{Name: ours, Probe: above(func() func() bool {
				l := bucket(busyRate, aboveBurst)
				return func() bool { return l.Try(1) }
			})},
			{Name: xtime, Probe: above(func() func() bool {
				return rate.NewLimiter(busyRate, aboveBurst).Allow
			})},
			{Name: "own compare-and-swap", Probe: above(func() func() bool {
				return newWord(busyRate, aboveBurst).try
			})},
		},
	}
}

// above starts its clock before the bucket exists and stops it when the last
// caller has gone, so the tokens that a limiter may admit are never underestimated.
func above(prepare func() func() bool) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		span := st.Span(2 * time.Second)
		start := measure.Now()
		try := prepare()
		var granted atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for measure.Since(start) < span {
					if try() {
						granted.Add(1)
					}
				}
			})
		}
		all.Wait()
		allowance := busyRate*measure.Since(start).Seconds() + aboveBurst
		return measure.Values{passed: 100 * float64(granted.Load()) / allowance}, nil
	}
}
