package stint

// inbox takes jobs that have to wait anyway, so that those who submit and those
// who finish do not fight for one lock. A bit of the word says in which tiers
// jobs are posted. Whoever holds the core's lock moves them into the queue
// before they could change what it decides, and no sooner.
type inbox struct {
	// mu comes after the core's lock.
	mu          spinMutex
	first, last *entry // linked in the order of their arrival
	free        *entry // unused entries, for those who post
	shut        bool   // nothing may be posted: the scheduler is closed or has no capacity
}

// post puts a job into the inbox if it has to wait anyway and needs nothing
// but its turn: one slot, no key, no bound on the queue, slots of our own. It
// reports whether it did.
func (c *core) post(s Scheduler, tier int, a arrival, w *watch) bool {
	word := c.word.Load()
	if s.weight != 1 || s.key != "" || c.door != nil || word&slowBit != 0 || word&(closedMask|postedMask) == 0 {
		return false
	}
	if !c.inbox.put(s, tier, a, w) {
		return false
	}
	bit := uint64(1) << (postedShift + tier)
	if c.word.Load()&bit == 0 {
		word = c.word.Or(bit)
		if word&bit == 0 && uint32(word) < c.limit.Load() && !c.waking.Load() {
			c.refresh() // a slot is free, and nobody is on the way who would see the job
		}
	}
	if w != nil && w.ctx.Err() != nil {
		c.refresh() // the watch may have come too early to see the job
	}
	return true
}

// put appends a job, unless the inbox is shut.
func (in *inbox) put(s Scheduler, tier int, a arrival, w *watch) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut {
		return false
	}
	if in.free == nil {
		in.free = newEntries()
	}
	e := in.free
	in.free, e.Value.link = e.Value.link, nil
	e.Value.weight, e.Value.tier = 1, int8(tier)
	e.Value.job, e.Value.fn, e.Value.watch = a.job, a.fn, w
	if a.task != nil {
		a.task.e = e
	}
	if in.last == nil {
		in.first = e
	} else {
		in.last.Value.link = e
	}
	in.last = e
	return true
}

// take empties the inbox. In exchange it leaves unused entries there.
func (in *inbox) take(free *entry) (first, left *entry) {
	in.mu.Lock()
	defer in.mu.Unlock()
	first, in.first, in.last = in.first, nil, nil
	if in.free == nil {
		in.free, free = free, nil
	}
	return first, free
}

func (in *inbox) setShut(shut bool) {
	in.mu.Lock()
	in.shut = shut
	in.mu.Unlock()
}

// lock takes the core's lock for a decision that depends on all that waits.
func (c *core) lock() {
	c.mu.Lock()
	if c.word.Load()&postedMask != 0 {
		c.empty()
	}
}

// empty moves what is posted into the queue. The bits are cleared first: a job
// that is posted after that sets its bit again.
func (c *core) empty() {
	c.word.And(^uint64(postedMask))
	had := c.free
	e, left := c.inbox.take(c.free)
	if c.free = left; left != had {
		c.freeCount = 0
	}
	for e != nil {
		following, w := e.Value.link, e.Value.watch
		e.Value.link, e.Value.watch = nil, nil
		e.Value.since = c.clock.stamp(c)
		c.log.Push(e, int(e.Value.tier), "", 1)
		c.watch(w, e)
		e = following
	}
}

// refresh starts whatever may start.
func (c *core) refresh() {
	c.lock()
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)
}
