package sched

import "context"

// An outcome that is settled by hand is of no function, and of a call that is never submitted.
// The caller that claims it settles it.

// InitByHand prepares an outcome that is settled by hand. Nothing else is submitted to e.
func (o *Outcome) InitByHand(e *Engine) {
	o.Init(context.Background(), e)
	o.task.status.Store(callByHand)
}

// ByHand reports whether it is settled by hand.
func (o *Outcome) ByHand() bool { return o.task.status.Load()&callByHand != 0 }

// Claim reports true to one caller, which then settles it.
func (o *Outcome) Claim() bool { return o.task.status.Or(callClaimed)&callClaimed == 0 }

// Settle publishes an outcome that the caller has claimed: err, or the value that the caller has stored
// before.
func (o *Outcome) Settle(err error) {
	const unwatched = callByHand | callClaimed
	outcome := uint32(callSettled)
	if err != nil {
		o.task.ensure().err = err
		outcome = callFailed
	}
	if o.task.status.CompareAndSwap(unwatched, unwatched|outcome) {
		return
	}
	// In a goroutine of its own: a teardown may end it, and the caller goes on.
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		o.settle()
	}()
	<-settled
}
