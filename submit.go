package stint

import "context"

// arrival is a job to submit.
type arrival struct {
	job       job
	fn        func(context.Context) error // for a group's job
	continues bool                        // another job's work
}

// submit queues a job, or starts it at once in a goroutine of its own. It
// waits only at the door of a bounded queue, which the continuation of work
// that has been accepted passes by.
func (c *core) submit(ctx context.Context, s Scheduler, a arrival) error {
	tier := s.tierFor(ctx)
	w, err := c.watchFor(ctx)
	if err != nil {
		return err
	}
	if !a.continues && c.post(s, tier, a, w) {
		return nil
	}
	plain := s.weight == 1 && s.key == ""
	if plain && c.door == nil {
		c.mu.Lock()
		c.drawFrom(c.posted() & (1 << tier))
	} else {
		c.lockForArrival(tier)
	}
	if err := c.refuses(int(s.weight), false); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.startJob(s, tier, a) {
		return nil
	}
	if plain && c.posted()&(1<<tier) != 0 && (w == nil || !w.stopped.Load()) {
		if _, ok := c.inbox.put(c, tier, a, w); ok { // behind the others
			w.keep(c)
			c.dispatchAndUnlock(0, false)
			return nil
		}
	}
	if !a.continues {
		if err := c.enterDoor(ctx, s, tier); err != nil {
			c.dispatchAndUnlock(0, false) // the room may be another's
			return err
		}
	}
	e := c.jobEntry(s, tier, a)
	c.push(e, s, tier)
	c.watch(w, e)
	c.dispatchAndUnlock(0, false)
	return nil
}

// lockForArrival takes the lock. Jobs that only wait for a worker do not keep
// an arrival out of a queue that is full: they get their workers now.
func (c *core) lockForArrival(tier int) {
	c.mu.Lock()
	if c.door == nil {
		c.empty(1 << tier) // what is posted in its tier came before
		return
	}
	c.empty(allTiers)
	if c.full() && c.waking.Load() {
		c.dispatchAndUnlock(0, false)
		c.lock()
	}
}

// startJob starts a job that nothing waits before, in a goroutine of its own.
// If it does, it gives up the lock.
func (c *core) startJob(s Scheduler, tier int, a arrival) bool {
	if !c.mayStart() {
		return false
	}
	e := c.jobEntry(s, tier, a)
	if !c.admit(e, s, tier) {
		c.recycleLocked(e)
		return false
	}
	c.waking.Store(true)
	c.mu.Unlock()
	go c.work(e)
	return true
}

func (c *core) jobEntry(s Scheduler, tier int, a arrival) *entry {
	e := c.entry(s, tier)
	e.Value.job, e.Value.fn = a.job, a.fn
	a.job.place(e)
	return e
}

// enterDoor waits until a bounded queue has room for one more. The lock is
// held, but for the time of waiting.
func (c *core) enterDoor(ctx context.Context, s Scheduler, tier int) error {
	if c.door == nil || c.door.Len() == 0 && c.inbox.claim(c.room()) {
		return nil
	}
	if c.cfg.WhenFull == Refuse {
		return ErrQueueFull
	}
	e := c.entry(s, tier)
	e.Value.receiver()
	c.door.Push(e, tier, s.key, 1)
	c.tellRoom()
	c.mu.Unlock()
	lender := c.lend(ctx)
	err := c.awaitDoor(ctx, e)
	c.reclaim(lender)
	c.mu.Lock()
	defer c.recycleLocked(e)
	if err == nil {
		c.reserved-- // the caller takes the room under this very lock
		err = c.refuses(int(s.weight), false)
	}
	return err
}

// awaitDoor waits until e is let through the door, or ctx ends.
func (c *core) awaitDoor(ctx context.Context, e *entry) error {
	select {
	case <-e.Value.ready:
		return e.Value.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.door.Remove(e) {
		c.mu.Unlock()
		return context.Cause(ctx)
	}
	c.mu.Unlock()
	<-e.Value.ready // let through at the same moment: the job is queued, and its watch takes it out
	return e.Value.err
}

// openDoor lets in as many submitters as the queue has room for, in the order
// in which the queue would serve them, and adds them to granted.
func (c *core) openDoor(granted *entry) *entry {
	for {
		e := c.door.Peek(c.occupied() + c.inbox.pending())
		if e == nil {
			return granted
		}
		c.door.Start(e)
		c.door.Finish(e.Value.keyName())
		c.reserved++
		e.Value.link = granted
		granted = e
	}
}
