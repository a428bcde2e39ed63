package sched //nolint:testpackage // a caller cannot step between a check and what follows it

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A continuation is cancelled after it has looked for that and before it is queued. It does
// not wait for a slot then.
func TestD6_CancelWhileAContinuationIsSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 1})
		plain := Ask{Weight: 1, Tier: 3}
		permit := mustTake(t, e, plain)
		before, job, cause := new(Call), new(nothing), errors.New("cancelled")
		before.InitByHand(e)
		ctx := &endsAfterCheck{Context: t.Context()}
		job.Init(ctx, e)
		job.Follow(job, plain, before)
		ctx.end = func() { job.Cancel(cause) }
		before.Claim()
		before.Settle(nil)
		synctest.Wait()
		if !job.Settled() || !errors.Is(job.Err(), cause) {
			t.Errorf("the continuation has settled: %v, with %v, want %v", job.Settled(), job.Err(), cause)
		}
		if n := e.Stats(func() {}).Queued; n != 0 {
			t.Errorf("%d jobs are queued, want 0", n)
		}
		permit.Release()
	})
}

// settlesOnValue is a context that calls settle when its value is asked for.
type settlesOnValue struct {
	context.Context //nolint:containedctx // it is a context itself

	settle func()
}

func (c settlesOnValue) Value(key any) any {
	c.settle()
	return c.Context.Value(key)
}

// Wait reports that a call has settled although its context has ended, too.
func TestD6_WaitOfACallThatSettlesAsTheContextEnds(t *testing.T) {
	e := New(Config{Limit: 1})
	for range 100 { // a select takes either of the two
		c := new(Call)
		c.InitByHand(e)
		ctx, cancel := context.WithCancel(t.Context())
		if !c.Wait(settlesOnValue{ctx, func() {
			cancel()
			if c.Claim() {
				c.Settle(nil)
			}
		}}) {
			t.Fatal("a call that has settled is said not to have")
		}
	}
}
