package stint

import "context"

// A submitter that finds a bounded queue full waits at its door, with an entry of
// its own in the order of the queue, and does not touch its job again: whoever
// lets it in queues the job under the same lock. So jobs are queued in the order
// in which they are let in, and the submitter may be slow to wake.

// hasRoom takes the room of one arrival in a bounded queue, if there is any.
func (c *core) hasRoom() bool {
	return c.door == nil || c.door.Len() == 0 && c.inbox.claim(c.room())
}

// enterDoor has the submitter of job wait until a bounded queue has room for one
// more. It is called with the lock held and returns without.
func (c *core) enterDoor(ctx context.Context, job *entry, w *watch) error {
	if c.cfg.WhenFull == Refuse {
		c.recycle(job)
		c.dispatchAndUnlock(0, false)
		return ErrQueueFull
	}
	v := &job.Value
	e := c.waiter(Scheduler{key: v.keyName(), weight: v.weight}, int(v.tier))
	e.Value.brings, e.Value.watch = job, w
	e.Value.since = c.clock.stamp(c.born, true)
	c.door.Push(e, int(v.tier), v.keyName(), 1)
	c.tellRoom()
	c.dispatchAndUnlock(0, false) // the word has yet to be told that the tier waits
	lender := c.lend(ctx)
	err := c.awaitDoor(ctx, e)
	c.reclaim(lender)
	if err != nil {
		c.lock()
		c.recycle(job)
		c.unlock()
	}
	e.Value.watch = nil
	c.recycleRare(e)
	return err
}

// awaitDoor waits until e is let through the door, or ctx ends.
func (c *core) awaitDoor(ctx context.Context, e *entry) error {
	select {
	case <-e.Value.ready:
		return e.Value.err
	case <-ctx.Done():
	}
	c.lock()
	if c.door.Remove(e) {
		c.dispatchAndUnlock(0, false) // the next one may need no room
		return context.Cause(ctx)
	}
	c.unlock()
	<-e.Value.ready // let through at the same moment: the job is queued, and its watch takes it out
	return e.Value.err
}

// openDoor lets the next submitter in, if there is one that may, and reports
// whether it did. It is called when nothing that is queued may start.
func (c *core) openDoor(running int) bool {
	return c.door != nil && c.door.Len() > 0 && c.letIn(running)
}

// letIn queues the job of the next submitter, in the order in which the queue
// would serve them, if the queue has room for it or it would not stay there. As
// long as a worker is on its way it may be for a job that is queued, and the
// worker will call again.
func (c *core) letIn(running int) bool {
	if !c.mayStart() {
		return false
	}
	e := c.door.Peek(c.occupied() + c.inbox.pending())
	if e == nil {
		if e = c.door.Peek(0); !c.startsAtOnce(e, running) {
			return false
		}
	}
	c.door.Start(e)
	c.door.Finish(e.Value.keyName())
	c.enqueue(e.Value.brings, e.Value.watch)
	c.granted.append(e)
	return true
}

// startsAtOnce reports whether the job of a submitter needs no room: a slot is
// free for it, and nothing that is queued goes before it. What is queued may all
// be held back, by caps or by its keys.
func (c *core) startsAtOnce(e *entry, running int) bool {
	return c.paused == nil && len(c.resumes) == 0 && c.slots == nil &&
		c.log.Admits(int(e.Value.tier), e.Value.keyName(), int(e.Value.weight), running)
}
