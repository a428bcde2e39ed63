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
		c.lock()
		c.drawFrom(c.posted() & (1 << tier))
	} else {
		c.lock()
		c.makeWay(tier)
	}
	if err := c.refuses(int(s.weight), false); err != nil {
		c.unlock()
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
	e := c.jobEntry(s, tier, a)
	if !a.continues && !c.hasRoom() {
		return c.enterDoor(ctx, e, w)
	}
	c.enqueue(e, w)
	c.dispatchAndUnlock(0, false)
	return nil
}

// enqueue queues the job of e, of which w takes it out again.
func (c *core) enqueue(e *entry, w *watch) {
	c.push(e)
	c.watch(w, e)
}

// makeWay goes before an arrival. Jobs that only wait for a worker do not keep
// one out of a queue that is full: they get their workers now.
func (c *core) makeWay(tier int) {
	if c.door == nil {
		c.empty(1 << tier) // what is posted in its tier came before
		return
	}
	c.empty(allTiers)
	if c.full() && c.waking.Load() {
		c.dispatch(0, false)
	}
}

// startJob starts a job that nothing waits before, in a goroutine of its own.
// If it does, it gives up the lock.
func (c *core) startJob(s Scheduler, tier int, a arrival) bool {
	if !c.mayStart() {
		return false
	}
	e := c.jobEntry(s, tier, a)
	if !c.admit(e) {
		c.recycle(e)
		return false
	}
	c.waking.Store(true)
	c.granted.append(e)
	c.unlock()
	return true
}

func (c *core) jobEntry(s Scheduler, tier int, a arrival) *entry {
	e := c.entry(s, tier)
	e.Value.job, e.Value.fn = a.job, a.fn
	a.job.place(e)
	return e
}
