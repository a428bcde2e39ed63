package sched

import "context"

// A call that is settled by hand has no function and is never submitted. Whoever claims it
// settles it.

// InitByHand prepares a call that is settled by hand. Nothing else is submitted to e.
func (c *Call) InitByHand(e *Engine) {
	c.Init(context.Background(), e)
	c.task.status.Store(callByHand)
}

// ByHand reports whether the call is settled by hand.
func (c *Call) ByHand() bool { return c.task.status.Load()&callByHand != 0 }

// Claim reports true to one caller, which then settles the call.
func (c *Call) Claim() bool { return c.task.status.Or(callClaimed)&callClaimed == 0 }

// Settle publishes the outcome of a call that the caller has claimed: err, or the value that the
// caller has stored before.
func (c *Call) Settle(err error) {
	const unwatched = callByHand | callClaimed
	outcome := uint32(callSettled)
	if err != nil {
		c.task.ensure().err = err
		outcome = callFailed
	}
	if c.task.status.CompareAndSwap(unwatched, unwatched|outcome) {
		return
	}
	// In a goroutine of its own: a teardown may end it, and the caller goes on.
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		c.settle()
	}()
	<-settled
}
