package sched

import "context"

// Follow submits job, which embeds the call, when before has a value. If before fails, so
// does the call. The end of the call's context, or its cancellation, cancels before too.
func (c *Call) Follow(job Job, a Ask, before *Call) {
	c.follow(before, func() {
		if err := before.Err(); err != nil {
			c.settleUnrun(job, err)
			return
		}
		c.begin(job, a)
	})
}

// FollowFailure is Follow for a job that is submitted when before fails. If before has a
// value, pass makes it the value of the call.
func (c *Call) FollowFailure(job Job, a Ask, before *Call, pass func()) {
	c.follow(before, func() {
		switch err := c.task.cancelled(); {
		case err != nil:
			c.settleUnrun(job, err)
		case before.Err() != nil:
			c.begin(job, a)
		default:
			pass()
			c.settleUnrun(job, nil)
		}
	})
}

// follow calls then when before has settled.
func (c *Call) follow(before *Call, then func()) {
	x := c.task.ensure()
	x.engine = c.task.x.e
	x.before.Store(before)
	ctx := c.task.parent
	stop := context.AfterFunc(ctx, func() { c.Cancel(context.Cause(ctx)) })
	c.Teardown(func() { stop() })
	before.After(func() {
		x.before.Store(nil) // before then: see Cancel
		then()
	})
}

// begin submits a call that continues another, unless the call has been cancelled.
func (c *Call) begin(job Job, a Ask) {
	err := c.task.ending()
	if err == nil {
		err = c.submit(job, a, true)
	}
	if err != nil {
		c.settleUnrun(job, err)
		return
	}
	if c.task.Err() != nil { // cancelled meanwhile, perhaps before withdraw could find it
		c.withdraw(context.Cause(&c.task))
	}
}

// settleUnrun settles a call whose job will not run, with err, or with the value that the
// call already has if err is nil.
func (c *Call) settleUnrun(job Job, err error) {
	job.Forget()
	c.refuse(err)
}
