package sched

import "sync/atomic"

// mail is what is left for the holder of the engine's lock by goroutines that find it
// taken: those that will wait anyway, and slots that come back. They need
// no answer at once, so they do not fight for the lock and for the memory under
// it, which the holder has in its cache; it does their part before it unlocks.
// This is flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat Combining and
// the Synchronization-Parallelism Tradeoff", SPAA 2010).
//
// What is left counts as done when the lock is next taken: [core.lock] takes
// it in first, so nothing that holds the lock ever sees an engine that lacks it.
type mail struct {
	c       *core                 // whose lock it is
	newest  atomic.Pointer[entry] // of the arrivals, linked to those before it
	returns atomic.Int64          // slots of plain work
}

func (m *mail) empty() bool { return m.newest.Load() == nil && m.returns.Load() == 0 }

// put leaves an arrival.
func (m *mail) put(x *entry) {
	for {
		x.link = m.newest.Load()
		if m.newest.CompareAndSwap(x.link, x) {
			return
		}
	}
}

// arrivals takes the arrivals out, the oldest first.
func (m *mail) arrivals() (oldest *entry) {
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

// leave leaves an arrival for the lock's holder. If it reports false, the lock was
// free, and the caller has it.
func (x *entry) leave() bool {
	c := &x.e.core
	// With shared slots, refusals call functions of the user's, which are to
	// surprise no other goroutine. And what may well start at once, because it has come
	// here for its key or weight alone, had better not be parked and woken.
	if c.cfg.Slots != nil || !x.plain() && c.gate.running()+int(x.Weight) <= int(c.gate.limit.Load()) {
		c.lock()
		return false
	}
	if c.tryLock() {
		return false
	}
	c.mail.put(x)
	c.mail.collect()
	return true
}

// putReturn leaves a slot of plain work for the lock's holder. If it reports
// false, it has not, and the caller has the lock.
//
// A Release too many is found with the lock held, but for one at the very moment
// in which the last slot is given back elsewhere: it gets in here, and is found
// when it is taken in. Then the process ends, as it does when a sync.Mutex
// that is not locked is unlocked.
func (m *mail) putReturn() bool {
	c := m.c
	for {
		if c.tryLock() {
			return false
		}
		left := m.returns.Load()
		if int64(c.gate.running()) <= left {
			break // more is released than was acquired, or the holder is just counting: the lock tells
		}
		if m.returns.CompareAndSwap(left, left+1) {
			m.collect()
			return true
		}
	}
	c.lock()
	return false
}

// collect does what has been left, unless the lock is taken and its holder will.
func (m *mail) collect() {
	if m.c.mu.TryLock() {
		m.c.unlock()
	}
}

// takeIn does what has been left. The lock is held.
func (m *mail) takeIn() {
	// Arrivals are taken out first and come last: whatever slot was left before
	// one of them was, by the same goroutine perhaps, is free then.
	x := m.arrivals()
	if n := m.returns.Load(); n > 0 {
		for range n {
			if m.c.gate.running() == 0 {
				go panic(notHeld) // its caller has gone; see putReturn
			}
			m.c.release(1)
		}
		// Only now, so that running is never less than what is on its way back.
		m.returns.Add(-n)
	}
	for x != nil {
		following := x.link
		x.link = nil
		if x.arrive() {
			m.c.news.granted.append(x)
		}
		x = following
	}
}
