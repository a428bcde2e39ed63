package limiter

import (
	"context"
	"time"

	jujulimit "github.com/juju/ratelimit"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

// waiting is the accuracy for callers that block until it is their turn.
func waiting() measure.Case {
	return measure.Case{
		Name:     "64 callers wait for one token each at 100 k/s, burst 100",
		Ours:     ours,
		Readings: paceReadings(),
		Goals:    paceGoals(),
		Subjects: []measure.Subject{
			{Name: ours, Probe: waitPace(waitStint)},
			{Name: xtime, Probe: waitPace(waitXTime)},
			{Name: uber, Probe: waitPace(waitUber)},
			{Name: juju, Probe: waitPace(waitJuju)},
		},
	}
}

// waiter blocks until it has a token.
type waiter func(ctx context.Context) error

func waitPace(prepare func() waiter) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		p := &pace{window: st.Span(500 * time.Millisecond)}
		wait := prepare()
		return p.run(callers, busyRate, func(ctx context.Context) {
			for wait(ctx) == nil && ctx.Err() == nil {
				p.add(1)
			}
		}), nil
	}
}

func waitStint() waiter {
	l := bucket(busyRate, busyBurst)
	return func(ctx context.Context) error { return l.Wait(ctx, 1) }
}

func waitXTime() waiter { return rate.NewLimiter(busyRate, busyBurst).Wait }

// waitUber and waitJuju take no context. At this rate no caller waits long.
func waitUber() waiter {
	l := ratelimit.New(busyRate, ratelimit.WithSlack(busyBurst))
	return func(context.Context) error { l.Take(); return nil }
}

func waitJuju() waiter {
	b := jujulimit.NewBucketWithRate(busyRate, busyBurst)
	return func(context.Context) error { b.Wait(1); return nil }
}
