// Package gate delays the start of jobs: until the machine has memory or processors to
// spare, or some time has passed since the last start.
package gate

import (
	"context"
	"time"
)

// pollEvery is how often a closed gate checks again. The kernel updates the load average
// every five seconds; memory changes faster.
const pollEvery = 250 * time.Millisecond

// turn lets one caller through a gate at a time, so that each sees the effect of the one
// before. It is a channel, since waiting for a mutex cannot be cancelled.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

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

// poll returns when open returns true or an error.
func poll(ctx context.Context, open func() (bool, error)) error {
	for {
		if ok, err := open(); ok || err != nil {
			return err
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// Gate is passed by a job before it starts.
type Gate interface {
	// Wait blocks until the gate is open. It returns ctx's cause if ctx ends first, and
	// an error if the state of the gate is unknown. It is safe for concurrent use.
	Wait(ctx context.Context) error
}
