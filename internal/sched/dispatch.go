package sched

import (
	"errors"
	"slices"
)

// dispatch gives out slots until no more work may start: the freed ones, which are still
// counted in the gate, so that they are handed over and not contended for, and any other
// free slots, except shared ones that are notified. finished says that work has ended, which
// is a turn of the policy even if it starts nothing. The decisions are acted on when the lock
// is released.
//
// The compare-and-swap that finds nothing to start also releases the slots left over and
// marks the tiers that must queue. So no arrival can slip in between that decision and
// its publication.
func (c *core) dispatch(freed int, finished bool) {
	started, given, short := false, freed, c.shared.short
	c.shared.short = false
	for {
		old := c.gate.word.Load()
		freed = min(freed, int(uint32(old))) // an excess Release may have released them already
		running := int(uint32(old)) - freed
		p, ok := c.next(running)
		if !ok {
			if c.blocked.admit(running) {
				continue
			}
			if finished && !started && c.capped(running) {
				c.queue.log().Pass(running)
				finished = false
				continue // the turn that begins may be the guard's
			}
			if c.publishGate(old, running) {
				break
			}
			continue
		}
		if !c.gate.word.CompareAndSwap(old, old-uint64(freed)+uint64(p.weight)) {
			continue
		}
		freed, started = 0, true
		if given -= int(p.weight); p.tier >= 0 {
			c.queue.pace.start(int(p.tier), given < 0 && c.cfg.Slots == nil)
		}
		c.start(p)
		if c.cfg.Slots != nil && c.shared.complete(given, short) {
			break
		}
	}
	if c.cfg.Slots != nil {
		c.shared.want(c.gate.running())
	}
	c.noticeIdle()
}

// capped reports whether only the caps keep work from starting, as opposed to a pause, a
// function that waits to resume, a worker on its way, or shared slots that others hold.
func (c *core) capped(running int) bool {
	return c.limits.paused == nil && !c.suspended.holds() && !c.queue.may(running)
}

// release gives slots freed by a finish to the next work.
func (c *core) release(freed int) {
	if c.cfg.Slots != nil && c.nothingWaits() {
		c.gate.word.Add(-uint64(freed)) // every call takes the lock, so the gate needs no marks
		return
	}
	c.queue.finishes()
	if !c.handOver(freed) {
		c.dispatch(freed, true)
	}
}

// handOver is dispatch for the case that matters for speed: one slot is freed, only one
// fifo waits, and its first item can start and is not the last. Then it neither asks the
// policy nor changes the gate. It reports whether this is the case.
func (c *core) handOver(freed int) bool {
	r := c.queue.simple()
	if r == nil || r.n == 1 || freed != 1 || c.blocked.any() {
		return false
	}
	old, limit := c.gate.word.Load(), int(c.gate.limit.Load())
	running := int(uint32(old))
	if old&slowBit != 0 || running > limit {
		return false
	}
	tier := c.queue.alone
	switch x := r.first().entry(); {
	case x == nil && c.volunteer != nil:
		c.volunteer.job = c.queue.shift(r)
		c.volunteer = nil
	case x == nil || x.job != nil && c.volunteer == nil || x.left():
		return false
	default:
		c.start(r.piece(tier, r.head))
	}
	c.queue.pace.start(tier, false)
	if running < limit {
		if x := r.first().entry(); c.mayStart() || x != nil && x.job == nil {
			c.dispatch(0, false)
		}
	}
	return true
}

// dispatchAndUnlock dispatches and releases the lock.
func (c *core) dispatchAndUnlock(freed int, finished bool) {
	c.dispatch(freed, finished)
	c.unlock()
}

// publishGate replaces the running count and the bits of the gate, if the gate is still
// old.
func (c *core) publishGate(old uint64, running int) bool {
	closed := c.queue.closed(running) | c.blocked.closed() // a slot that comes free may be for a submitter
	bits := uint64(closed) << closedShift
	if c.limits.paused != nil || c.closed || c.idle.awaited() || c.tracks || c.suspended.wanted() {
		bits |= slowBit
	}
	fresh := old&^(runningMask|closedMask|slowBit) | bits | uint64(running)
	return fresh == old || c.gate.word.CompareAndSwap(old, fresh)
}

// next returns the piece that starts next, if one may. Functions that wait to resume
// their suspended slots go first, even through a pause: they are already running.
func (c *core) next(running int) (p piece, ok bool) {
	if c.suspended.wanted() {
		if x, hold := c.suspended.next(running); hold {
			return piece{x: x, tier: -1, weight: x.slots()}, x != nil
		}
	}
	if c.limits.paused != nil {
		return piece{}, false
	}
	for {
		p, ok := c.queue.peek(running)
		if !ok || p.isJob() && !c.mayStart() {
			return piece{}, false
		}
		if p.left() { // the slot is for the next piece
			c.refuse(p, errLeft)
			continue
		}
		if c.cfg.Slots == nil {
			return p, true
		}
		err := c.shared.obtain(p.x)
		if err == nil {
			return p, true
		}
		if errors.Is(err, ErrNoSlot) {
			return piece{}, false
		}
		c.refuse(p, err)
	}
}

// mayStart reports whether there is a worker for another job. One worker is woken at a
// time, and it wakes the next: starting a goroutine for each of many small jobs costs
// more than the jobs. But a job that waits only for a worker does not block arrivals at a
// full queue.
func (c *core) mayStart() bool { return c.volunteer != nil || !c.waking.Load() || c.full() }

func (c *core) full() bool { return c.cfg.Queue > 0 && c.queue.log().Len() >= c.cfg.Queue }

func (x *entry) slots() int32 {
	if x == nil {
		return 0
	}
	return x.Weight
}

// start removes a piece from the queue to run it; its slots are counted already. A worker
// that has just finished a job keeps the next one for itself.
func (c *core) start(p piece) {
	if p.tier < 0 {
		c.suspended.resume(p.x)
		return
	}
	var j job
	if p.x == nil {
		j = p.it.asJob()
	} else {
		j = job{p.x.job, p.x.group, p.x}
	}
	c.queue.start(p)
	if p.x != nil {
		c.holders.begin(p.x)
	}
	switch {
	case p.x != nil && p.x == c.claimant:
		c.claimant = nil // it does not have to be woken
	case j.Job == nil:
		c.decided.granted.append(p.x)
	case c.volunteer != nil:
		c.volunteer.job, c.volunteer = j, nil
	default:
		c.waking.Store(true)
		c.decided.starting = append(c.decided.starting, j)
	}
}

// refuse removes a piece from the queue with err as its error. Of several refused jobs,
// the outcome of the last one is published first.
func (c *core) refuse(p piece, err error) {
	if !p.isJob() {
		c.queue.remove(p)
		p.x.err = err
		c.decided.granted.append(p.x)
		return
	}
	c.workers++ // until its error is published
	if p.x != nil {
		c.decided.refused = append(c.decided.refused, refusal{job{Job: p.x.job, group: p.x.group}, err})
		c.queue.remove(p)
		p.x.recycle()
		return
	}
	c.decided.refused = append(c.decided.refused, refusal{p.it.asJob(), err})
	c.queue.remove(p)
}

// refuseThese refuses pieces. Their errors are published in the order of arrival.
func (c *core) refuseThese(pieces []piece, err error) {
	slices.SortFunc(pieces, byArrival)
	for _, p := range slices.Backward(pieces) {
		c.refuse(p, err)
	}
}

// refuseAll refuses all that waits and is of a weight for which why returns an error. It
// returns how many pieces it has refused.
func (c *core) refuseAll(why func(weight int) error) (refused int) {
	for _, p := range slices.Backward(c.queue.all()) {
		if err := why(int(p.weight)); err != nil {
			c.refuse(p, err)
			refused++
		}
	}
	return refused
}

// nothingWaits reports whether nothing is left to start, and no call waits for that.
func (c *core) nothingWaits() bool {
	return c.queue.empty() && !c.suspended.wanted() && !c.idle.awaited() && !c.blocked.any()
}

// noticeIdle ends the waits for an idle engine when nothing accepted is left. No
// submitter is blocked then: an empty queue has room.
func (c *core) noticeIdle() {
	if c.idle.awaited() && c.gate.running() == 0 && c.queue.empty() && c.suspended.n == 0 && c.workers == 0 {
		c.idle.notice()
	}
}
