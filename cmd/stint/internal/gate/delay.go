package gate

import (
	"context"
	"time"
)

// Delay keeps a time between the starts of jobs.
type Delay struct {
	turn  turn
	every time.Duration
	next  time.Time // when the next may start; belongs to whoever has the turn
}

var _ Gate = (*Delay)(nil)

// NewDelay returns a gate that opens once in a while: every so often.
func NewDelay(every time.Duration) *Delay { return &Delay{turn: newTurn(), every: every} }

// Wait blocks until the delay after the last start is over.
func (d *Delay) Wait(ctx context.Context) error {
	if err := d.turn.take(ctx); err != nil {
		return err
	}
	defer d.turn.give()
	if err := sleep(ctx, d.next.Sub(now())); err != nil {
		return err
	}
	d.next = now().Add(d.every)
	return nil
}
