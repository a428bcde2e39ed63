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

// taskOf returns the task of this core within which ctx runs, if any.
func (c *core) taskOf(ctx context.Context) *task {
	if uint32(c.word.Load()) == 0 && c.lent.Load() == 0 {
		return nil // nothing runs
	}
	t, _ := ctx.Value(c).(*task)
	return t
}

// lend gives up the slot of the task that ctx runs within, for as long as its
// function waits. reclaim must follow. It returns nil if there is none.
func (c *core) lend(ctx context.Context) *task {
	t := c.taskOf(ctx)
	if t == nil {
		return nil
	}
	c.mu.Lock()
	var granted *entry
	first, ok := c.lendLocked(t)
	if first {
		c.yield(t.e)
		granted = c.dispatch(int(t.e.Value.weight), true)
	}
	c.mu.Unlock()
	c.deliver(granted)
	if !ok {
		return nil
	}
	return t
}

// lendLocked counts one more goroutine of t that waits. first says that t's
// slot is free now; not ok, that t has ended and has no slot.
func (c *core) lendLocked(t *task) (first, ok bool) {
	for {
		waits := t.state.Load()
		if waits == taskEnded || t.e == &c.gone {
			return false, false
		}
		if t.state.CompareAndSwap(waits, waits+1) {
			if waits == taskHolding {
				c.lent.Add(1)
			}
			return waits == taskHolding, true
		}
	}
}

// reclaim ends what lend began: the last goroutine of t that waited gets a
// slot for it again, and waits until it has.
func (c *core) reclaim(t *task) {
	if t == nil {
		return
	}
	c.mu.Lock()
	if !c.lastToReturn(t) {
		c.mu.Unlock()
		return
	}
	c.reclaimLocked(t, 0)
}

// lastToReturn counts one goroutine of t less that waits, and reports whether t
// now wants its slot back. If so, t counts as lent until it has it.
func (c *core) lastToReturn(t *task) bool {
	if waits := t.state.Load(); waits != 1 {
		if waits > 1 {
			t.state.Store(waits - 1)
		}
		return false
	}
	return true
}

// reclaimLocked gets t a slot, first of all those that want one, out of freed
// ones if there are such. It is called with the lock held and returns without.
func (c *core) reclaimLocked(t *task, freed int) {
	e := c.entry(Scheduler{key: t.e.Value.keyName(), weight: t.e.Value.weight}, int(t.e.Value.tier))
	e.Value.receiver()
	c.resumes = append(c.resumes, e)
	c.dispatchAndUnlock(freed, false)
	<-e.Value.ready

	c.mu.Lock()
	granted := c.returned(t, e)
	c.recycleLocked(e)
	c.mu.Unlock()
	c.deliver(granted)
}

// returned marks t as holding slots again, those of e. If t has ended since,
// or another goroutine of it has begun to wait, it has no use for them.
func (c *core) returned(t *task, e *entry) (granted *entry) {
	waits := t.state.Load()
	if waits == 1 {
		if c.slots != nil {
			c.moveGrant(e, t.e)
		}
		t.state.Store(taskHolding)
		c.lent.Add(-1)
		return nil
	}
	if waits > 1 {
		t.state.Store(waits - 1)
	}
	c.yield(e)
	return c.dispatch(int(e.Value.weight), true)
}

// takeNested gets a slot for a function that is called within parent's. The
// slot that parent lends is handed straight down, if it suffices and the key
// allows it; otherwise it goes to whoever is next, and the call waits like any
// other. nested says that parent has lent its slot and wants it back.
func (c *core) takeNested(ctx context.Context, s Scheduler, tier int, parent *task) (e *entry, nested bool, err error) {
	c.mu.Lock()
	first, nested := c.lendLocked(parent)
	var granted *entry
	if first {
		freed := int(parent.e.Value.weight)
		c.yield(parent.e)
		if c.slots == nil && !c.killed.Load() && int(s.weight) <= freed && c.log.KeyHasRoom(s.key) {
			e = c.entry(s, tier)
			c.log.Admit(s.key)
			freed -= int(s.weight)
		}
		granted = c.dispatch(freed, e == nil)
	}
	c.mu.Unlock()
	c.deliver(granted)
	if e == nil {
		if e, err = c.take(ctx, s, tier, nested); err != nil && nested {
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
