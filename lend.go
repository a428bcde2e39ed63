package stint

import (
	"context"
	"slices"
)

// A function that waits for work of its own scheduler lends its slot: under a
// limit of 1 the work could never start otherwise. The first goroutine of the
// function that waits lends; the last one that goes on takes a slot again, in
// front of everything that is queued. In between, the function as a whole has
// none.

// holdOf returns the hold of the function within which ctx runs, if it runs on
// a slot of this core.
func (c *core) holdOf(ctx context.Context) *hold {
	if c.word.Load()&(runningMask|lentBit) == 0 {
		return nil // there is no task
	}
	h, _ := ctx.Value(c).(*hold)
	return h
}

// lend gives up the slot of the task that ctx runs within, for as long as its
// function waits. reclaim must follow. It returns nil if there is none.
func (c *core) lend(ctx context.Context) *hold {
	h := c.holdOf(ctx)
	if h == nil {
		return nil
	}
	c.lock()
	first, ok := c.lendLocked(h)
	if first {
		c.yield(h.e)
		c.release(int(h.e.Value.weight))
	}
	c.unlock()
	if !ok {
		return nil
	}
	return h
}

// lendLocked counts one more goroutine of h that waits. first says that h's
// slot is free now; not ok, that h has ended and has no slot.
func (c *core) lendLocked(h *hold) (first, ok bool) {
	for {
		waits := h.state.Load()
		if waits == taskEnded || h.e == &c.gone {
			return false, false
		}
		if h.state.CompareAndSwap(waits, waits+1) {
			if waits == taskHolding {
				c.countLent(1)
			}
			return waits == taskHolding, true
		}
	}
}

// countLent counts the tasks that have lent their slot. The word says whether
// there are any, from before the slot is free until the task has one again, so
// that one look at it tells whether there are tasks at all.
func (c *core) countLent(n int) {
	if c.lent += n; c.lent > 0 {
		c.word.Or(lentBit)
	} else {
		c.word.And(^uint64(lentBit))
	}
}

// reclaim ends what lend began: the last goroutine of h that waited gets a
// slot for it again, and waits until it has.
func (c *core) reclaim(h *hold) {
	if h == nil {
		return
	}
	c.lock()
	if !c.lastToReturn(h) {
		c.unlock()
		return
	}
	c.reclaimLocked(h, 0)
}

// lastToReturn counts one goroutine of h less that waits, and reports whether h
// now wants its slot back. If so, h counts as lent until it has it.
func (c *core) lastToReturn(h *hold) bool {
	if waits := h.state.Load(); waits != 1 {
		if waits > 1 {
			h.state.Store(waits - 1)
		}
		return false
	}
	return true
}

// reclaimLocked gets h a slot, first of all those that want one, out of freed
// ones if there are such. It is called with the lock held and returns without.
func (c *core) reclaimLocked(h *hold, freed int) {
	e := c.waiter(Scheduler{key: h.e.Value.keyName(), weight: h.e.Value.weight}, int(h.e.Value.tier))
	c.resumes = append(c.resumes, e)
	c.dispatchAndUnlock(freed, false)
	<-e.Value.ready

	c.lock()
	c.returned(h, e)
	var lost *task
	if c.slots != nil && h.state.Load() == taskHolding && h.e.Value.lost {
		lost = h.e.Value.task
	}
	c.recycle(e)
	c.unlock()
	if lost != nil {
		lost.cancel(ErrSlotLost)
	}
}

// returned marks h as holding slots again, those of e. If h has ended since,
// or another goroutine of it has begun to wait, it has no use for them.
func (c *core) returned(h *hold, e *entry) {
	waits := h.state.Load()
	if waits == 1 {
		if c.slots != nil {
			c.moveGrant(e, h.e)
		}
		h.state.Store(taskHolding)
		c.countLent(-1)
		return
	}
	if waits > 1 {
		h.state.Store(waits - 1)
	}
	c.yield(e)
	c.release(int(e.Value.weight))
}

// takeNested gets a slot for a function that is called within parent's. The
// slot that parent lends is handed straight down, if it suffices and the key
// allows it; otherwise it goes to whoever is next, and the call waits like any
// other. nested says that parent has lent its slot and wants it back.
func (c *core) takeNested(ctx context.Context, s Scheduler, tier int, parent *hold) (e *entry, nested bool, err error) {
	c.lock()
	first, nested := c.lendLocked(parent)
	if first {
		freed := int(parent.e.Value.weight)
		c.yield(parent.e)
		if c.slots == nil && !c.killed.Load() && int(s.weight) <= freed && c.log.KeyHasRoom(s.key) {
			e = c.entry(s, tier)
			c.log.Admit(s.key)
			freed -= int(s.weight)
		}
		c.dispatch(freed, e == nil)
	}
	c.unlock()
	if e == nil {
		e = c.waiter(s, tier)
		e.Value.nested = nested
		if e, err = c.take(ctx, e); err != nil && nested {
			c.reclaim(parent)
		}
	}
	return e, nested, err
}

// startResume takes a task that has its slot again out of those that want it.
func (c *core) startResume(e *entry) {
	i := slices.Index(c.resumes, e)
	c.resumes = slices.Delete(c.resumes, i, i+1)
	c.log.Admit(e.Value.keyName())
}
