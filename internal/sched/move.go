package sched

// SetTier moves a queued call to the end of another tier, behind the other entries of its
// key, and reports whether the call was queued. In its own tier the call keeps its place.
func (c *Call) SetTier(tier int) bool {
	e := c.Engine()
	e.lock()
	p, ok := c.waiting()
	if !ok {
		e.unlock()
		return false
	}
	if int(p.tier) != tier {
		if more := c.task.ensure(); !more.moved {
			more.moved, more.arrived = true, p.since()
		}
		e.queue.move(p, tier, e.queue.arrives(tier))
	}
	e.dispatchAndUnlock(0, false)
	return true
}

// move moves a piece to another tier with now as its arrival. The piece stays queued, so
// its cancellation stays in place.
func (q *queue) move(p piece, tier int, now int64) {
	if p.it == nil {
		x := p.x
		q.log().Remove(&x.node)
		x.Tier, x.since = int8(tier), now
		q.log().PushAt(&x.node, x.queued(), uint64(x.since))
		return
	}
	it := *p.it
	it.since = now
	at := q.put(it, tier, int(p.weight))
	it.cancellation.addItem(tier, at)
	q.remove(p)
	if x := p.x; x != nil {
		x.waits, x.Tier, x.since, x.place = true, int8(tier), now, at
		return
	}
	it.job.call().place = uint64(tier)<<tierShift | at
}

// arrived returns when a piece arrived, before any move to another tier.
func (p *piece) arrived() int64 {
	job := p.job()
	if job == nil || job.call() == nil {
		return p.since()
	}
	if more := job.call().task.future.Load(); more != nil && more.moved {
		return more.arrived
	}
	return p.since()
}

// arrivedNode is arrived for an entry with a key.
func arrivedNode(n *node) int64 { return (&piece{x: n.Value}).arrived() }

// job returns the job of a piece, nil for a waiting goroutine.
func (p *piece) job() Job {
	if p.x != nil {
		return p.x.job
	}
	return p.it.job
}
