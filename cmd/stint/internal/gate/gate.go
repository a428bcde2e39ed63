// Package gate delays the start of jobs: until the machine has memory or processors to
// spare, and some time has passed since the last start.
package gate

import (
	"context"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
)

// pollEvery is how often closed gates are checked again. The kernel updates the load
// average every five seconds; memory changes faster.
const pollEvery = 250 * time.Millisecond

// Check reports whether a job may start now. An error means that this is unknown. It is
// called by one goroutine at a time.
type Check func() (open bool, err error)

// Gates lets one job at a time through, the higher tiers first, so that the checks see the
// effect of the job before. A nil Gates is always open.
type Gates struct {
	turns  stint.Scheduler // one slot, for the job that passes
	delay  time.Duration
	checks []Check

	// Owned by the job that passes.
	next time.Time    // when the next job may start
	turn stint.Permit // of turns
}

// New returns gates that keep a minimum time between the starts of jobs, and are open while
// all checks are true.
func New(delay time.Duration, checks ...Check) *Gates {
	return &Gates{turns: stint.New(1, stint.Config{}), delay: delay, checks: checks}
}

// Wait blocks until a job of a tier may start. The caller must start it and then call [Gates.Started].
// Wait returns ctx's cause if ctx ends first, and an error if a check fails; the caller must
// not call Started then. It is safe for concurrent use.
func (g *Gates) Wait(ctx context.Context, tier stint.Priority) error {
	if g == nil {
		return nil
	}
	turn, err := g.turns.At(tier).Acquire(ctx)
	if err != nil {
		return err
	}
	g.turn = turn
	if err = g.pass(ctx); err != nil {
		g.turn.Release()
	}
	return err
}

// pass waits for the delay first: the job before needs time to take its memory.
func (g *Gates) pass(ctx context.Context) error {
	for pause := g.next.Sub(clock.Now()); ; pause = pollEvery {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if ok, err := g.open(); ok || err != nil {
			return err
		}
	}
}

// open reports whether all checks are true.
func (g *Gates) open() (bool, error) {
	for _, check := range g.checks {
		if ok, err := check(); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Started lets the next job pass: the job that has passed was started, or will not be.
func (g *Gates) Started() {
	if g != nil {
		g.next = clock.Now().Add(g.delay)
		g.turn.Release()
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
