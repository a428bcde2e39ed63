package sched //nolint:testpackage // a caller cannot step between cancellations.of and the submission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// asks has an ask of each kind that is queued in its own way.
var asks = map[string]Ask{
	"plain":        {Weight: 1, Tier: 3},
	"with a key":   {Weight: 1, Tier: 3, Key: "a"},
	"of two slots": {Weight: 2, Tier: 3},
}

// The context ends after cancellations.of and before the job is queued. The job is removed
// all the same.
func TestA6_JobQueuedAfterTheEndOfItsContext(t *testing.T) {
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{Limit: 2})
				full := mustTake(t, e, Ask{Weight: 2, Tier: 3})
				cause := errors.New("ended")
				ctx, end := context.WithCancelCause(t.Context())
				w, err := e.cancellations.of(ctx)
				if err != nil {
					t.Fatal(err)
				}
				end(cause)
				synctest.Wait()
				if e.cancellations.latest.Load() != nil {
					t.Error("the engine keeps a context that has ended")
				}
				job := new(nothing)
				job.Init(ctx, e)
				arrives := arrival{e: e, Ask: ask, job: job, cancellation: w}
				if err := arrives.submit(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if !job.Settled() || !errors.Is(job.Err(), cause) {
					t.Errorf("the job has settled: %v, with %v, want %v", job.Settled(), job.Err(), cause)
				}
				if n := e.Stats(func() {}).Queued; n != 0 {
					t.Errorf("%d jobs of an ended context are queued", n)
				}
				full.Release()
			})
		})
	}
}

// countedContext counts the functions that are to be called at its end.
type countedContext struct {
	context.Context //nolint:containedctx // it is a context itself

	done chan struct{}
	n    int
}

func (c *countedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is what context.AfterFunc calls.
func (c *countedContext) AfterFunc(func()) (stop func() bool) {
	c.n++
	stopped := false
	return func() bool {
		if !stopped {
			stopped = true
			c.n--
		}
		return true
	}
}

// A cancellation that has no jobs any more when it has registered ends the registration.
func TestA6_CancellationStoppedWhileItRegisters(t *testing.T) {
	e := New(Config{Limit: 1})
	ctx := &countedContext{Context: t.Context(), done: make(chan struct{})}
	w, err := e.cancellations.of(ctx)
	if err != nil || ctx.n != 1 {
		t.Fatalf("%d registrations, %v", ctx.n, err)
	}
	w.stopped.Store(true)
	w.arm(e)
	if ctx.n != 0 {
		t.Errorf("%d registrations with the context are left, want 0", ctx.n)
	}
}
