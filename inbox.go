package stint

import "math"

// inbox takes jobs that have to wait anyway, so that those who submit and those
// who finish do not fight for one lock. A bit of the word says in which tiers
// jobs are posted. Whoever holds the core's lock moves them into the queue
// before they could change what it decides, and no sooner.
type inbox struct {
	// mu comes after the core's lock.
	mu          spinMutex
	first, last *entry // linked in the order of their arrival
	count       int
	free        entryList // unused entries, for those who post
	room        int       // how many may be posted before the queue must be asked, if it is bounded
	shut        bool      // nothing may be posted: the scheduler is closed or has no capacity
}

// post puts a job into the inbox if it has to wait anyway and needs nothing
// but its turn: one slot, no key, slots of our own. It reports whether it did.
func (c *core) post(s Scheduler, tier int, a arrival, w *watch) bool {
	word := c.word.Load()
	if s.weight != 1 || s.key != "" || word&slowBit != 0 || word&(closedMask|postedMask) == 0 {
		return false
	}
	if !c.inbox.put(tier, a, w) {
		return false
	}
	bit := uint64(1) << (postedShift + tier)
	if c.word.Load()&bit == 0 {
		word = c.word.Or(bit)
		if word&bit == 0 && uint32(word) < c.limit.Load() && !c.waking.Load() {
			c.refresh() // a slot is free, and nobody is on the way who would see the job
		}
	}
	if w != nil && (w.stopped.Load() || w.ctx.Err() != nil) {
		c.refresh() // the watch may have come too early to see the job
	}
	return true
}

// put appends a job, unless the inbox is shut or has no room.
func (in *inbox) put(tier int, a arrival, w *watch) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut || in.room == 0 {
		return false
	}
	in.room--
	in.count++
	e := in.free.pop()
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

// take empties the inbox. In exchange it gets unused entries. room is that of
// the queue, before it gets what is taken.
func (in *inbox) take(free *entryList, room int) (first *entry) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.room = max(room-in.count, 0)
	first, in.first, in.last, in.count = in.first, nil, nil, 0
	in.free.take(free)
	return first
}

func (in *inbox) setRoom(room int) {
	in.mu.Lock()
	in.room = max(room-in.count, 0)
	in.mu.Unlock()
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
	for e := c.inbox.take(&c.free, c.room()); e != nil; {
		following, w := e.Value.link, e.Value.watch
		e.Value.link, e.Value.watch = nil, nil
		e.Value.since = c.clock.stamp(c)
		c.log.Push(e, int(e.Value.tier), "", 1)
		c.watch(w, e)
		e = following
	}
}

// room is how many jobs a bounded queue can still take. While submitters wait
// at the door there is none for others.
func (c *core) room() int {
	switch {
	case c.door == nil:
		return math.MaxInt
	case c.door.Len() > 0:
		return 0
	default:
		return max(c.cfg.Queue-c.log.Len()-c.reserved, 0)
	}
}

// tellRoom keeps the inbox from taking more than a bounded queue has room for.
func (c *core) tellRoom() {
	if c.door != nil {
		c.inbox.setRoom(c.room())
	}
}

// refresh starts whatever may start.
func (c *core) refresh() {
	c.lock()
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)
}
