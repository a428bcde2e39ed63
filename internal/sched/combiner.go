package sched

import "sync/atomic"

// combiner is the publication list of a combining lock: operations left for the holder of
// the engine's lock by goroutines that find the lock taken. These are arrivals that wait
// anyway, and releases of slots. They need no answer at once, so their goroutines contend
// neither for the lock nor for the memory under it, which the holder has in its cache;
// the holder performs them before it unlocks. This is flat combining (Hendler, Incze,
// Shavit, Tzafrir: "Flat Combining and the Synchronization-Parallelism Tradeoff", SPAA
// 2010).
//
// An operation counts as done when the lock is next taken: [core.lock] combines first, so
// no holder of the lock sees an engine without the pending operations.
type combiner struct {
	c        *core                 // the core with the lock
	newest   atomic.Pointer[entry] // arrival, linked to the earlier ones
	releases atomic.Int64          // pending, of one slot without a key each
}

func (m *combiner) empty() bool { return m.newest.Load() == nil && m.releases.Load() == 0 }

// deferArrival leaves x for the lock's holder.
func (m *combiner) deferArrival(x *entry) {
	for {
		x.link = m.newest.Load()
		if m.newest.CompareAndSwap(x.link, x) {
			return
		}
	}
}

// takeArrivals removes the pending arrivals and returns them, the oldest first.
func (m *combiner) takeArrivals() (oldest *entry) {
	if m.newest.Load() == nil {
		return nil
	}
	for x := m.newest.Swap(nil); x != nil; {
		before := x.link
		x.link, oldest = oldest, x
		x = before
	}
	return oldest
}

// lockOrDefer takes the engine's lock and returns false, or leaves x for the lock's
// holder and returns true.
func (x *entry) lockOrDefer() (deferred bool) {
	c := &x.e.core
	// With shared slots, a refusal calls user code, which no other goroutine should run.
	// And an arrival that is here only for its key or weight probably starts at once:
	// parking and waking it would cost more than the lock.
	if c.cfg.Slots != nil || !x.plain() && int(x.Weight) <= int(c.gate.limit.Load())-c.gate.running() {
		c.lock()
		return false
	}
	if c.tryLock() {
		return false
	}
	c.combiner.deferArrival(x)
	c.combiner.flush()
	return true
}

// deferRelease leaves the release of one plain slot for the lock's holder and returns
// true, or takes the lock and returns false.
//
// An excess Release is found with the lock held, with one exception: if the last slot is
// released by another goroutine at the same moment, the excess one is deferred and found
// by combine. The process ends then, as it does when an unlocked sync.Mutex is unlocked.
func (m *combiner) deferRelease() bool {
	c := m.c
	for {
		if c.tryLock() {
			return false
		}
		left := m.releases.Load()
		if int64(c.gate.running()) <= left {
			break // an excess Release, or the holder is counting: find out with the lock held
		}
		if m.releases.CompareAndSwap(left, left+1) {
			m.flush()
			return true
		}
	}
	c.lock()
	return false
}

// flush performs the pending operations, unless the lock is taken: then its holder does.
func (m *combiner) flush() {
	if m.c.mu.TryLock() {
		m.c.unlock()
	}
}

// combine performs the pending operations. The lock is held.
func (m *combiner) combine() {
	// Arrivals are removed first and performed last: a slot that was released before an
	// arrival, perhaps by the same goroutine, is free by then.
	x := m.takeArrivals()
	if n := m.releases.Load(); n > 0 {
		for range n {
			if m.c.gate.running() == 0 {
				go panic(notHeld) // its caller has returned; see deferRelease
			}
			m.c.release(1)
		}
		// Only now, so that running is never less than the number of pending releases.
		m.releases.Add(-n)
	}
	for x != nil {
		following := x.link
		x.link = nil
		if x.arrive() {
			m.c.decided.granted.append(x)
		}
		x = following
	}
}
