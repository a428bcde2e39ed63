package stint

import (
	"context"
	"math"
	"runtime"

	"github.com/stintgo/stint/internal/backlog"
)

// inbox takes jobs that have to wait anyway, so that those who submit and those
// who finish do not fight for one lock and for the entries under it: a job is
// 40 bytes of an array here. Whoever holds the core's lock draws jobs into the
// queue before they could change what it decides, and no sooner.
//
// A bit of the word says in which tiers jobs are posted. It may be set when
// there are none, but is never clear when there are: it is set after a job has
// been put, and cleared before jobs are taken.
type inbox struct {
	// mu comes after the core's lock.
	mu      spinMutex
	batches [Tiers]batch
	count   int
	spare   pages
	room    int  // how many more may be posted before a bounded queue must be asked
	shut    bool // nothing may be posted: the scheduler is closed or has no capacity
	clock   stamps
}

// posting is a job that needs nothing but its turn: one slot, no key.
type posting struct {
	job   job
	fn    func(context.Context) error
	watch *watch
	since int64
}

// drawSome is how many jobs are drawn at a time.
const drawSome = 64

// post puts a job into the inbox if it has to wait anyway and needs nothing
// but its turn. It reports whether it did.
func (c *core) post(s Scheduler, tier int, a arrival, w *watch) bool {
	word := c.word.Load()
	if s.weight != 1 || s.key != "" || word&slowBit != 0 || word&(closedMask|postedMask|pausedBit) == 0 {
		return false
	}
	word, ok := c.inbox.put(c, tier, a, w)
	if !ok {
		return false
	}
	if word&(1<<(postedShift+tier)) == 0 && uint32(word) < c.limit.Load() && !c.waking.Load() {
		c.kick() // a slot is free, and nobody is on the way who would see the job
	}
	w.keep(c)
	if w != nil && (w.stopped.Load() || w.ctx.Err() != nil) {
		c.refresh() // the watch may have come too early to see the job
	}
	return true
}

// put appends a job, unless the inbox is shut or has no room.
func (in *inbox) put(c *core, tier int, a arrival, w *watch) (word uint64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.shut || in.room == 0 {
		return 0, false
	}
	in.room--
	in.count++
	b := &in.batches[tier]
	if b.last == nil || b.last.n == len(b.last.jobs) {
		b.append(in.spare.pop())
	}
	page := b.last
	page.jobs[page.n] = posting{job: a.job, fn: a.fn, watch: w, since: in.clock.stamp(c.born, false)}
	page.n++
	b.n++
	// With the lock held, so that who has shut the inbox finds all that is in it.
	bit := uint64(1) << (postedShift + tier)
	if word = c.word.Load(); word&bit == 0 {
		word = c.word.Or(bit)
	}
	return word, true
}

// claim takes the room of one arrival that does not come through the inbox.
func (in *inbox) claim(room int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.room = max(room-in.count, 0)
	if in.room == 0 {
		return false
	}
	in.room--
	return true
}

// take empties the inbox for a tier, in exchange for unused pages. room is that
// of the queue, before it gets anything that is posted.
func (in *inbox) take(tier int, unused *pages, room int) (taken batch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.room = max(room-in.count, 0)
	taken, in.batches[tier] = in.batches[tier], batch{}
	in.count -= taken.n
	if in.spare.n == 0 {
		in.spare, *unused = *unused, in.spare
	}
	return taken
}

// pending is how many jobs are posted.
func (in *inbox) pending() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.count
}

// postedBy is how many jobs are posted, by tier.
func (in *inbox) postedBy() (posted [Tiers]int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for tier := range posted {
		posted[tier] = in.batches[tier].n
	}
	return posted
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

// draw moves up to n posted jobs of a tier into the queue. The lock is held.
func (c *core) draw(tier, n int) {
	d := &c.drawn[tier]
	bit := uint64(1) << (postedShift + tier)
	c.word.Or(1 << (closedShift + tier)) // what is drawn waits in the queue, also if the caller publishes nothing
	if d.n == 0 {
		c.word.And(^bit)
		*d = c.inbox.take(tier, &c.unused, c.room())
		c.drawnCount += d.n
	}
	n = min(n, d.n)
	for range n {
		p := d.pop(&c.unused)
		e := c.entry(Scheduler{weight: 1}, tier)
		e.Value.job, e.Value.fn, e.Value.since = p.job, p.fn, p.since
		p.job.place(e)
		c.log.Push(e, tier, "", 1)
		c.watch(p.watch, e)
	}
	c.drawnCount -= n
	if d.n > 0 {
		c.word.Or(bit)
	}
}

// posted returns a bit for each tier that may have posted jobs.
func (c *core) posted() uint8 { return uint8(c.word.Load() & postedMask >> postedShift) }

// empty moves all posted jobs of the tiers of a mask into the queue.
func (c *core) empty(mask uint8) {
	if c.posted()&mask == 0 {
		return
	}
	for tier := range Tiers {
		// Twice: what has been drawn before, and what is posted. No more often, or
		// those who go on posting would keep the lock's holder here.
		for range 2 {
			if c.posted()&mask&(1<<tier) != 0 {
				c.draw(tier, math.MaxInt)
			}
		}
	}
}

// drawPosted moves into the queue what is posted at the time of the call, and takes
// the lock for some jobs at a time.
func (c *core) drawPosted() {
	c.lock()
	posted := c.inbox.postedBy()
	for tier := range Tiers {
		posted[tier] += c.drawn[tier].n
	}
	for tier, left := range posted {
		for left > 0 && c.posted()&(1<<tier) != 0 {
			n := min(left, backlog.PieceMax)
			c.draw(tier, n)
			left -= n
			c.unlock()
			runtime.Gosched() // a goroutine that waits for the lock has it before it is taken again
			c.lock()
		}
	}
	c.unlock()
}

const allTiers = 1<<Tiers - 1

// lockAll takes the core's lock for what concerns all that waits.
func (c *core) lockAll() {
	c.lock()
	c.empty(allTiers)
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
		return max(c.cfg.Queue-c.occupied(), 0)
	}
}

// occupied is how much of a bounded queue's room is taken, but for what is in
// the inbox.
func (c *core) occupied() int { return c.log.Len() + c.drawnCount }

// tellRoom keeps the inbox from taking more than a bounded queue has room for.
func (c *core) tellRoom() {
	if c.door != nil {
		c.inbox.setRoom(c.room())
	}
}

// refresh starts whatever may start, having drawn everything.
func (c *core) refresh() {
	c.lockAll()
	c.dispatchAndUnlock(0, false)
}

// kick starts whatever may start.
func (c *core) kick() {
	c.lock()
	c.dispatchAndUnlock(0, false)
}
