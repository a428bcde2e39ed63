package sched

import "context"

// Call is a function that runs on slots in a goroutine of its own, and its outcome. It is
// embedded in the Job that has the function.
type Call struct {
	Outcome

	place uint64 // tier and place of its item, while it waits in a fifo
}

func (c *Call) call() *Call { return c }

// Go submits job, which embeds the call.
func (c *Call) Go(job Job, a Ask) {
	if err := c.submit(job, a, fromFunction); err != nil {
		c.unrun(job, err).settle()
	}
}

// GoBeside is Go for a goroutine that works beside the function of the call's context, which
// keeps its slots while the goroutine waits for room. It returns the error that refused job.
func (c *Call) GoBeside(job Job, a Ask) error {
	err := c.submit(job, a, besideFunction)
	if err != nil {
		c.unrun(job, err).settle()
	}
	return err
}

// TryGo starts job, which embeds the call, if it can start at once.
func (c *Call) TryGo(job Job, a Ask) bool {
	if c.task.parent.Err() != nil {
		return false
	}
	e := c.Engine()
	e.lock()
	if tried := (&arrival{e: e, Ask: a, job: job}); tried.try() {
		return true
	}
	e.unlock()
	return false
}

func (c *Call) submit(job Job, a Ask, from origin) error {
	e, ctx := c.Engine(), c.task.parent
	w, err := e.cancellations.of(ctx)
	if err != nil {
		return err
	}
	arrives := arrival{e: e, Ask: a, job: job, cancellation: w, from: from}
	return arrives.submit(ctx)
}

// Cancel cancels the context of a running function, and removes a waiting one from the
// queue. A call without a function settles with the cause. The calls that this one continues
// are cancelled, too.
func (c *Call) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	for c != nil { // not recursive: a chain of calls may be long
		c = c.cancel(cause)
	}
}

// cancel is Cancel of this call alone. It returns the call that this one continues, if that has
// not settled, else nil.
func (c *Call) cancel(cause error) (before *Call) {
	switch x := c.task.future.Load(); {
	case c.Settled():
	case c.ByHand():
		if c.Claim() {
			c.Settle(cause)
		}
	case x != nil && x.engine != nil: // the context first: see Call.begin
		c.task.cancel(cause)
		if before = x.before.Load(); before == nil {
			c.withdraw(cause)
		}
	case !c.withdraw(cause):
		c.task.cancel(cause)
	}
	return before
}

// withdraw removes the function from the queue and reports whether it was queued.
func (c *Call) withdraw(cause error) bool {
	e := c.Engine()
	e.lock()
	p, ok := c.waiting()
	if !ok {
		e.unlock()
		return false
	}
	e.refuse(p, cause)
	e.dispatchAndUnlock(0, false)
	return true
}

// waiting returns the call's piece, if it waits in the queue. The lock is held.
func (c *Call) waiting() (p piece, ok bool) {
	e := c.Engine()
	if x := c.task.x; x != &e.plain {
		// Entries are reused: x may be another job's by now. The lock guards its fields
		// only while it waits.
		if x.waits && x.job != nil && x.job.call() == c {
			return e.queue.entered(x), true
		}
		return p, false
	}
	tier, place := int(c.place>>tierShift), c.place&(1<<tierShift-1)
	r := &e.queue.runs[tier]
	if it := r.at(place); it == nil || it.job.call() != c {
		return p, false
	}
	return r.piece(tier, place), true
}

// run calls the function, unless its context has ended since it got a slot.
func (c *Call) run(w *worker) {
	w.runs, w.hold, w.task = true, &c.task.Hold, &c.task
	if w.e.cfg.Slots != nil {
		w.e.shared.bind(w.job.x, &c.task)
	}
	var err error
	returned := false
	defer func() {
		if !returned {
			err = w.e.cfg.Caught(recover())
		}
		if err != nil {
			c.task.ensure().err = err
		}
		if !returned {
			w.e.cfg.Report(err)
		}
	}()
	if err = c.task.ending(); err == nil {
		err = w.job.Do(&c.task)
	} else {
		w.job.Forget()
	}
	returned = true
}
