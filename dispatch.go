package stint

import (
	"errors"
	"slices"
)

// dispatch gives out slots until no more work may start: those that a finish
// has freed, which are still counted in word and so are handed over, never put
// back and fought for, and whatever else is free. finished says that this is a
// finish, which is a turn of the policy also if it starts nothing. The granted
// entries are returned as a list, to be delivered without the lock.
//
// A slot that nobody gets is given back, and the tiers that must queue are
// marked, in the one compare-and-swap that finds nothing to start: so no
// arrival can slip in between that decision and its publication.
func (c *core) dispatch(freed int, finished bool) (granted *entry) {
	last, started := &granted, false
	for {
		old := c.word.Load()
		freed = min(freed, int(uint32(old))) // a stray Release may have given them back already
		running := int(uint32(old)) - freed
		e := c.next(running)
		if e == nil {
			if in := c.openDoor(running); in != nil {
				*last, last = in, &in.Value.link
				continue
			}
			if finished && !started && c.capped(running) {
				c.log.Pass(running)
				finished = false
				continue // the turn that begins may be the guard's
			}
			if c.publish(old, running) {
				break
			}
			continue
		}
		if !c.word.CompareAndSwap(old, old-uint64(freed)+uint64(e.Value.weight)) {
			continue
		}
		freed, started = 0, true
		if c.start(e) {
			*last, last = e, &e.Value.link
		}
	}
	return c.afterDispatch(granted)
}

// capped reports whether it is the caps that allow nothing to start: not a
// pause, a task that wants its slots back first, a worker that is on its way,
// or shared slots that others hold.
func (c *core) capped(running int) bool {
	return c.paused == nil && len(c.resumes) == 0 && c.log.Peek(running) == nil &&
		(c.mayStart() || c.log.Overtakers(c.posted(), nil) == 0)
}

// handOver is dispatch for the case that matters for speed: a worker has
// finished a job of one slot while all slots are taken, and what comes next is
// a job of one slot. Then the word stays as it is.
func (c *core) handOver(freed int) *entry {
	old := c.word.Load()
	running := int(uint32(old))
	if freed != 1 || old&(slowBit|pausedBit) != 0 || running != int(c.limit.Load()) || c.door != nil && c.door.Len() > 0 {
		return nil
	}
	e := c.log.Peek(running - 1)
	if e == nil || e.Value.job == nil || e.Value.weight != 1 || c.log.LenTier(int(e.Value.tier)) == 1 {
		return nil
	}
	if c.log.Overtakers(uint8(old&postedMask>>postedShift), e) != 0 {
		return nil
	}
	c.log.Start(e)
	c.clock.started++
	c.unwatch(e)
	return e
}

// dispatchAndUnlock dispatches, gives up the lock and delivers.
func (c *core) dispatchAndUnlock(freed int, finished bool) {
	granted := c.dispatch(freed, finished)
	c.mu.Unlock()
	c.deliver(granted)
}

// publish replaces the running count and the bits of the word, if the word is
// still old.
func (c *core) publish(old uint64, running int) bool {
	closed := c.log.Closed(running)
	if c.door != nil {
		closed |= c.door.Closed(0) // a slot that comes free may be for a submitter
	}
	bits := uint64(closed) << closedShift
	if c.paused != nil {
		bits |= pausedBit
	}
	if c.closed || c.idle != nil || c.slots != nil || len(c.resumes) > 0 {
		bits |= slowBit
	}
	fresh := old&^(runningMask|closedMask|slowBit|pausedBit) | bits | uint64(running)
	return fresh == old || c.word.CompareAndSwap(old, fresh)
}

// next returns the entry that starts next, or nil. Tasks that have lent their
// slot and want it back go first, even through a pause: they run already.
func (c *core) next(running int) *entry {
	if len(c.resumes) > 0 {
		if e, hold := c.nextResume(running); hold {
			return e
		}
	}
	if c.paused != nil {
		return nil
	}
	worker := c.mayStart()
	for {
		e := c.log.Peek(running)
		if tiers := c.inboxMatters(e, running, worker); tiers != 0 {
			c.drawFrom(tiers)
			continue
		}
		if e == nil || e.Value.job != nil && !worker {
			return nil
		}
		if c.slots == nil {
			return e
		}
		err := c.obtain(e)
		if err == nil {
			return e
		}
		if errors.Is(err, ErrNoSlot) {
			return nil
		}
		c.refuse(e, err)
	}
}

// mayStart reports whether there is a worker for another job. One worker is
// woken at a time, and it wakes the next: starting a goroutine for each of many
// small jobs costs more than the jobs. But a job that only waits for a worker
// does not keep others out of a queue that is full.
func (c *core) mayStart() bool { return c.volunteer || !c.waking.Load() || c.full() }

// inboxMatters returns the tiers of which a posted job might go before e, which
// is the queue's choice, or nil.
func (c *core) inboxMatters(e *entry, running int, worker bool) (tiers uint8) {
	posted := c.posted()
	if posted == 0 || running >= int(c.limit.Load()) || e == nil && !worker {
		return 0
	}
	return c.log.Overtakers(posted, e)
}

// drawFrom draws some posted jobs of each tier of a mask.
func (c *core) drawFrom(tiers uint8) {
	for tier := range Tiers {
		if tiers&(1<<tier) != 0 {
			c.draw(tier, drawSome)
		}
	}
}

// nextResume returns the first task that can have its slot back. hold says that
// nothing else may start: there is one, or one that lacks nothing but slots.
func (c *core) nextResume(running int) (e *entry, hold bool) {
	for _, e := range c.resumes {
		switch {
		case !c.log.KeyHasRoom(e.Value.keyName()):
		case running > 0 && running+int(e.Value.weight) > int(c.limit.Load()):
			return nil, true
		case c.slots != nil && !c.regain(e):
			return nil, true
		default:
			return e, true
		}
	}
	return nil, false
}

// regain gets a shared slot for a task that wants its own back. If none can be
// had, it goes on with a lost one.
func (c *core) regain(e *entry) bool {
	err := c.obtain(e)
	if errors.Is(err, ErrNoSlot) {
		return false
	}
	e.Value.lost = err != nil
	return true
}

// start takes e out of where it waits; its slots are counted already. It
// reports whether e is to be delivered: a worker that has just finished a job
// keeps the next one for itself.
func (c *core) start(e *entry) (deliver bool) {
	if !e.Queued() {
		c.startResume(e)
		return true
	}
	c.log.Start(e)
	c.clock.started++
	c.unwatch(e)
	if e.Value.job == nil {
		return true
	}
	if c.volunteer {
		c.volunteer, c.volunteered = false, e
		return false
	}
	c.waking.Store(true)
	return true
}

// dequeue takes a queued entry out without starting it.
func (c *core) dequeue(e *entry) {
	c.log.Remove(e)
	c.unwatch(e)
}

// refuse takes a queued entry out; the next delivery tells it err.
func (c *core) refuse(e *entry, err error) {
	c.dequeue(e)
	e.Value.more().err = err
	if e.Value.job != nil {
		c.workers++ // until its outcome is published
	}
	e.Value.link, c.refused = c.refused, e
}

// refuseAll refuses the queued entries for which why gives an error, and
// returns how many those are.
func (c *core) refuseAll(why func(*entry) error) (refused int) {
	entries := c.log.Entries()
	for _, e := range slices.Backward(entries) {
		if err := why(e); err != nil {
			c.refuse(e, err)
			refused++
		}
	}
	return refused
}

// afterDispatch does what follows from a change of the queue: it tells those
// that are refused, says what is wanted of shared slots, and notices the end of
// a drain.
func (c *core) afterDispatch(granted *entry) *entry {
	for c.refused != nil {
		e := c.refused
		c.refused = e.Value.link
		e.Value.link, granted = granted, e
	}
	if c.slots != nil {
		c.want()
	}
	c.noticeIdle()
	return granted
}

// noticeIdle ends a drain when nothing is left of what was accepted.
func (c *core) noticeIdle() {
	if c.idle != nil && c.running() == 0 && c.log.Len() == 0 && c.lent == 0 && c.workers == 0 {
		close(c.idle)
		c.idle = nil
	}
}

// deliver tells entries that they have their slot, or that they are refused:
// waiting goroutines go on, and a job gets a worker. It is called without the
// lock, because waking takes far longer than deciding.
func (c *core) deliver(granted *entry) {
	var refusals []func()
	for e := granted; e != nil; {
		following, job := e.Value.link, e.Value.job
		e.Value.link = nil
		switch err := e.Value.refusal(); {
		case job == nil:
			e.Value.ready <- struct{}{}
		case err == nil:
			go c.work(e)
		default:
			c.recycle(e)
			refusals = append(refusals, func() { job.refuse(err) })
		}
		e = following
	}
	if len(refusals) > 0 {
		c.publishAll(refusals)
	}
}

// publishAll tells jobs that they are refused, and returns when all of them
// have been told. It does so in a goroutine of its own: their teardowns may end
// it, and the caller has a slot to run on, to wait for or to give back.
func (c *core) publishAll(refusals []func()) {
	published := make(chan struct{})
	go func() {
		defer close(published)
		defer func() {
			c.mu.Lock()
			c.workers -= len(refusals)
			c.noticeIdle()
			c.mu.Unlock()
		}()
		for _, refuse := range refusals {
			defer refuse()
		}
	}()
	<-published
}
