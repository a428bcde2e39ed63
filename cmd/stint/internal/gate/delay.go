package gate

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Delay keeps a minimum time between the starts of jobs.
type Delay struct {
	turn  turn
	every time.Duration
	next  time.Time // when the next job may start; owned by the holder of turn
}

var _ Gate = (*Delay)(nil)

// NewDelay returns a gate that lets one job through per interval.
func NewDelay(every time.Duration) *Delay { return &Delay{turn: newTurn(), every: every} }

// Wait blocks until the delay after the last start has passed.
func (d *Delay) Wait(ctx context.Context) error {
	if err := d.turn.take(ctx); err != nil {
		return err
	}
	defer d.turn.give()
	if err := sleep(ctx, d.next.Sub(clock.Now())); err != nil {
		return err
	}
	d.next = clock.Now().Add(d.every)
	return nil
}
