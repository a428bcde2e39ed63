package sched

import "context"

// Follow submits job, which embeds the call, when before has a value. If before fails, so
// does the call. The end of the call's context, or its cancellation, cancels before too.
func (c *Call) Follow(job Job, a Ask, before *Call) {
	c.follow(before, func() *Outcome {
		if err := before.Err(); err != nil {
			return c.unrun(job, err)
		}
		return c.begin(job, a)
	})
}

// FollowFailure is Follow for a job that is submitted when before fails. If before has a
// value, pass makes it the value of the call.
func (c *Call) FollowFailure(job Job, a Ask, before *Call, pass func()) {
	c.follow(before, func() *Outcome {
		switch err := c.task.cancelled(); {
		case err != nil:
			return c.unrun(job, err)
		case before.Err() != nil:
			return c.begin(job, a)
		default:
			pass()
			return c.unrun(job, nil)
		}
	})
}

// follow calls then when before has settled.
func (c *Call) follow(before *Call, then Follower) {
	x := c.task.ensure()
	x.engine = c.task.x.e
	x.before.Store(before)
	ctx := c.task.parent
	stop := context.AfterFunc(ctx, func() { c.Cancel(context.Cause(ctx)) })
	c.Teardown(func() { stop() })
	before.After(func() *Outcome {
		x.before.Store(nil) // before then: see Cancel
		return then()
	})
}

// begin submits a call that continues another, unless the call has been cancelled. It returns
// the outcome of a call that is not submitted, which the caller settles.
func (c *Call) begin(job Job, a Ask) *Outcome {
	err := c.task.ending()
	if err == nil {
		err = c.submit(job, a, continuation)
	}
	if err != nil {
		return c.unrun(job, err)
	}
	if c.task.Err() != nil { // cancelled meanwhile, perhaps before withdraw could find it
		c.withdraw(context.Cause(&c.task))
	}
	return nil
}

// unrun ends a call whose job will not run, with err, or with the value that the call
// already has if err is nil. It returns the outcome, which the caller settles.
func (c *Call) unrun(job Job, err error) *Outcome {
	job.Forget()
	c.abandon(err)
	return &c.Outcome
}
