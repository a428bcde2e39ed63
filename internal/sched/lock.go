package sched

import "sync/atomic"

// combiningLock is the lock of an engine. A goroutine that finds it taken leaves its
// operation for the holder, which performs it before it unlocks. Such operations are
// arrivals that wait anyway, and releases of slots. They need no answer at once, so their
// goroutines contend neither for the lock nor for the memory under it, which the holder has
// in its cache. This is flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat Combining
// and the Synchronization-Parallelism Tradeoff", SPAA 2010).
//
// An operation counts as done when the lock is next taken: lock performs the pending ones
// first, so no holder of the lock sees an engine without them.
//
// Waking and starting goroutines takes far longer than deciding which. So the holder adds
// to decided, and unlock acts on that without the lock.
type combiningLock struct {
	engine   *Engine               // immutable
	newest   atomic.Pointer[entry] // pending arrival, linked to the earlier ones
	releases atomic.Int64          // pending, of one slot without a key each

	_ pad

	mu      spinMutex
	decided decisions // to act on when the lock is released; guarded by mu
}

// pad keeps data that different processors write on different cache lines.
type pad [64]byte

// lock takes the lock.
func (m *combiningLock) lock() {
	m.mu.Lock()
	m.combine()
}

func (m *combiningLock) tryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.combine()
	return true
}

// maxRounds is how often the lock's holder performs pending operations before it starts a
// goroutine that continues.
const maxRounds = 64

// unlock performs the pending operations, releases the lock, and then acts on the
// decisions made since it was taken. An operation deferred after that is performed by the
// goroutine that defers it, or here.
func (m *combiningLock) unlock() {
	if m.decided.none() && m.nonePending() {
		m.mu.Unlock()
		if m.nonePending() || !m.mu.TryLock() {
			return
		}
	}
	m.unlockAndAct()
}

// unlockAndAct is unlock for the case that something is pending or decided.
func (m *combiningLock) unlockAndAct() {
	var refused []refusal // published last: that waits for functions of the user's
	for rounds := 0; ; rounds++ {
		m.combine()
		if m.decided.none() {
			m.mu.Unlock()
		} else {
			what := m.decided
			m.decided = decisions{}
			m.mu.Unlock()
			refused = append(refused, what.refused...)
			what.deliver(m.engine)
		}
		if m.nonePending() {
			break
		}
		if rounds == maxRounds {
			go m.flush()
			break
		}
		if !m.mu.TryLock() {
			break
		}
	}
	if len(refused) > 0 {
		publishAll(m.engine, refused)
	}
}

// nonePending reports whether no operation is pending.
func (m *combiningLock) nonePending() bool { return m.newest.Load() == nil && m.releases.Load() == 0 }

// deferArrival leaves x for the lock's holder.
func (m *combiningLock) deferArrival(x *entry) {
	for {
		x.link = m.newest.Load()
		if m.newest.CompareAndSwap(x.link, x) {
			return
		}
	}
}

// takeArrivals removes the pending arrivals and returns them, the oldest first.
func (m *combiningLock) takeArrivals() (oldest *entry) {
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
	e := x.e
	// With shared slots, a refusal calls user code, which no other goroutine should run.
	// And an arrival that is here only for its key or weight probably starts at once:
	// parking and waking it would cost more than the lock.
	if e.cfg.Slots != nil || !x.plain() && int(x.Weight) <= int(e.gate.limit.Load())-e.gate.running() {
		e.lock()
		return false
	}
	if e.tryLock() {
		return false
	}
	e.deferArrival(x)
	e.flush()
	return true
}

// deferRelease leaves the release of one plain slot for the lock's holder and returns
// true, or takes the lock and returns false.
//
// An excess Release is found with the lock held, with one exception: if the last slot is
// released by another goroutine at the same moment, the excess one is deferred and found
// by combine. The process ends then, as it does when an unlocked sync.Mutex is unlocked.
func (m *combiningLock) deferRelease() bool {
	for {
		if m.tryLock() {
			return false
		}
		left := m.releases.Load()
		if int64(m.engine.gate.running()) <= left {
			break // an excess Release, or the holder is counting: find out with the lock held
		}
		if m.releases.CompareAndSwap(left, left+1) {
			m.flush()
			return true
		}
	}
	m.lock()
	return false
}

// flush performs the pending operations, unless the lock is taken: then its holder does.
func (m *combiningLock) flush() {
	if m.mu.TryLock() {
		m.unlock()
	}
}

// combine performs the pending operations. The lock is held.
func (m *combiningLock) combine() {
	// Arrivals are removed first and performed last: a slot that was released before an
	// arrival, perhaps by the same goroutine, is free by then.
	x := m.takeArrivals()
	if n := m.releases.Load(); n > 0 {
		for range n {
			if m.engine.gate.running() == 0 {
				go panic(notHeld) // its caller has returned; see deferRelease
			}
			m.engine.release(1)
		}
		// Only now, so that running is never less than the number of pending releases.
		m.releases.Add(-n)
	}
	for x != nil {
		following := x.link
		x.link = nil
		if x.arrive() {
			m.decided.granted.append(x)
		}
		x = following
	}
}
