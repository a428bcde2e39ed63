package sched

import "context"

// An outcome that is settled by hand belongs to a call without a function, which is never
// submitted. The caller that claims the outcome settles it.

// InitByHand prepares an outcome that is settled by hand. Nothing is submitted to e.
func (o *Outcome) InitByHand(e *Engine) {
	o.Init(context.Background(), e)
	o.task.status.Store(callByHand)
}

// ByHand reports whether the outcome is settled by hand.
func (o *Outcome) ByHand() bool { return o.task.status.Load()&callByHand != 0 }

// Claim returns true to exactly one caller, which then settles the outcome.
func (o *Outcome) Claim() bool { return o.task.status.Or(callClaimed)&callClaimed == 0 }

// Settle publishes an outcome that the caller has claimed: err, or the value that the
// caller has stored if err is nil.
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
	// A teardown may end the goroutine that settles, so it is not the caller's.
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		o.settle()
	}()
	<-settled
}
