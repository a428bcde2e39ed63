package limiter

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

const (
	slowRate = 100     // tokens per second; 64 callers wait for up to 0.64 s
	fastRate = 100_000 // and then one millisecond is enough for all
	effect   = "until every waiter has had a token"
)

// rateChange raises the rate while all callers wait. A limiter whose callers sleep
// for a time that was computed beforehand cannot shorten that time.
func rateChange() measure.Case {
	return measure.Case{
		Name:     "64 waiters, the rate is raised from 100/s to 100 k/s",
		Ours:     ours,
		Readings: []measure.Reading{{Name: effect, Unit: "ns"}},
		Goals:    []string{effect + " ≤ 100 ms"},
		Subjects: []measure.Subject{
			{Name: ours, Probe: change(func() (waiter, func()) {
				l := bucket(slowRate, 1)
				return func(ctx context.Context) error { return l.Wait(ctx, 1) }, func() { l.SetRate(fastRate) }
			})},
			{Name: xtime, Probe: change(func() (waiter, func()) {
				l := rate.NewLimiter(slowRate, 1)
				return l.Wait, func() { l.SetLimit(fastRate) }
			})},
		},
	}
}

func change(prepare func() (waiter, func())) func(*measure.Stage) (measure.Values, error) {
	return func(*measure.Stage) (measure.Values, error) {
		wait, raise := prepare()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs := make([]error, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { errs[i] = wait(ctx) })
		}
		// Long enough for all to wait, too short for more than a few to be served.
		time.Sleep(50 * time.Millisecond)
		start := measure.Now()
		raise()
		all.Wait()
		return measure.Values{effect: float64(measure.Since(start))}, errors.Join(errs...)
	}
}
