package stint

import (
	"errors"
	"slices"
)

// dispatch gives out slots until no more work may start: those that a finish
// has freed, which are still counted in word and so are handed over, never put
// back and fought for, and whatever else is free. finished says that this is a
// finish, which is a turn of the policy also if it starts nothing. Who gets one
// is told when the lock is given up.
//
// A slot that nobody gets is given back, and the tiers that must queue are
// marked, in the one compare-and-swap that finds nothing to start: so no
// arrival can slip in between that decision and its publication.
func (c *core) dispatch(freed int, finished bool) {
	started := false
	for {
		old := c.word.Load()
		freed = min(freed, int(uint32(old))) // a stray Release may have given them back already
		running := int(uint32(old)) - freed
		e := c.next(running)
		if e == nil {
			if c.openDoor(running) {
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
		c.start(e)
	}
	c.afterDispatch()
}

// capped reports whether it is the caps that allow nothing to start: not a
// pause, a task that wants its slots back first, a worker that is on its way,
// or shared slots that others hold.
func (c *core) capped(running int) bool {
	return c.paused == nil && len(c.resumes) == 0 && c.log.Peek(running) == nil &&
		(c.mayStart() || c.log.Overtakers(c.posted(), nil) == 0)
}

// release gives slots that a finish has freed to whoever is next.
func (c *core) release(freed int) {
	switch {
	case c.slots != nil && c.nothingWaits():
		c.word.Add(-uint64(freed)) // everybody takes the lock, so nobody has to be told
	case !c.handOver(freed):
		c.dispatch(freed, true)
	}
}

// handOver is dispatch for the case that matters for speed: one slot has come
// free while all are taken, and what comes next is an entry of one slot, which
// can start and is not the last of its tier. Then the word stays as it is. It
// reports whether this is the case.
func (c *core) handOver(freed int) bool {
	old := c.word.Load()
	running := int(uint32(old))
	if freed != 1 || old&(slowBit|pausedBit) != 0 || running != int(c.limit.Load()) || c.door != nil && c.door.Len() > 0 {
		return false
	}
	if uint64(c.log.Closed(running))<<closedShift&^old != 0 {
		return false // the word has yet to be told of a key that has room again
	}
	e := c.log.Peek(running - 1)
	if e == nil || e.Value.weight != 1 || e.Value.job != nil && !c.volunteer || c.log.LenTier(int(e.Value.tier)) == 1 {
		return false
	}
	if e.Value.left() {
		return false
	}
	if c.log.Overtakers(uint8(old&postedMask>>postedShift), e) != 0 {
		return false
	}
	c.start(e)
	return true
}

// dispatchAndUnlock dispatches and gives up the lock.
func (c *core) dispatchAndUnlock(freed int, finished bool) {
	c.dispatch(freed, finished)
	c.unlock()
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
		if e.Value.left() { // what comes free now is for the next
			c.refuse(e, errLeft)
			continue
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

// start takes e out of where it waits; its slots are counted already. A worker
// that has just finished a job keeps the next one for itself.
func (c *core) start(e *entry) {
	if !e.Queued() {
		c.startResume(e)
		c.granted.append(e)
		return
	}
	c.log.Start(e)
	c.clock.started++
	c.unwatch(e)
	switch {
	case e.Value.job == nil:
		c.granted.append(e)
	case c.volunteer:
		c.volunteer, c.volunteered = false, e
	default:
		c.waking.Store(true)
		c.granted.append(e)
	}
}

// dequeue takes a queued entry out without starting it.
func (c *core) dequeue(e *entry) {
	c.log.Remove(e)
	c.unwatch(e)
}

// refuse takes a queued entry out, to be told err. Of several jobs, the last
// one to be refused is told first.
func (c *core) refuse(e *entry, err error) {
	c.dequeue(e)
	e.Value.more().err = err
	if e.Value.job != nil {
		c.workers++ // until its outcome is published
	}
	c.granted.append(e)
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

// afterDispatch does what follows from a change of the queue: it says what is
// wanted of shared slots, and notices the end of a drain.
func (c *core) afterDispatch() {
	if c.slots != nil {
		c.want(c.running())
	}
	c.noticeIdle()
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
// lock, because waking takes far longer than deciding. Jobs that are refused it
// adds to refusals, for publishAll.
func (c *core) deliver(granted *entry, refusals []func()) []func() {
	for e := granted; e != nil; {
		following, job := e.Value.link, e.Value.job
		e.Value.link = nil
		switch err := e.Value.refusal(); {
		case job == nil:
			sleeps := e.Value.sleeps // before it goes on, and e is used again
			e.Value.ready <- struct{}{}
			if sleeps {
				c.sleeper.Rouse()
			}
		case err == nil:
			go c.work(e)
		default:
			c.recycleRare(e)
			refusals = append(refusals, func() { job.refuse(err) })
		}
		e = following
	}
	return refusals
}

// publishAll tells jobs that they are refused, and returns when all of them
// have been told. It does so in a goroutine of its own: their teardowns may end
// it, and the caller has a slot to run on, to wait for or to give back.
func (c *core) publishAll(refusals []func()) {
	published := make(chan struct{})
	go func() {
		defer close(published)
		defer func() {
			c.lock()
			c.workers -= len(refusals)
			c.noticeIdle()
			c.unlock()
		}()
		for _, refuse := range refusals {
			defer refuse()
		}
	}()
	<-published
}
