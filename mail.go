package stint

import "sync/atomic"

// mail is what is left for the holder of the core's lock by those who find it
// taken: goroutines that will wait anyway, and slots that come back. They need
// no answer at once, so they do not fight for the lock and for the memory under
// it, which the holder has in its cache; it does their part before it unlocks.
// This is flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat Combining and
// the Synchronization-Parallelism Tradeoff", SPAA 2010).
//
// What is left counts as done when the lock is next taken: [core.lock] takes
// it in first, so nobody with the lock ever sees a scheduler that lacks it.
type mail struct {
	newest  atomic.Pointer[entry] // of the arrivals, linked to those before it
	returns atomic.Int64          // slots of plain work: weight 1, no key
}

func (m *mail) empty() bool { return m.newest.Load() == nil && m.returns.Load() == 0 }

// put leaves an arrival.
func (m *mail) put(e *entry) {
	for {
		e.Value.link = m.newest.Load()
		if m.newest.CompareAndSwap(e.Value.link, e) {
			return
		}
	}
}

// arrivals takes the arrivals out, the oldest first.
func (m *mail) arrivals() (oldest *entry) {
	if m.newest.Load() == nil {
		return nil
	}
	for e := m.newest.Swap(nil); e != nil; {
		before := e.Value.link
		e.Value.link, oldest = oldest, e
		e = before
	}
	return oldest
}

// lock takes the core's lock.
func (c *core) lock() {
	c.mu.Lock()
	c.takeIn()
}

func (c *core) tryLock() bool {
	if !c.mu.TryLock() {
		return false
	}
	c.takeIn()
	return true
}

// A holder does what others leave this many times before a goroutine of its own
// goes on with it.
const maxRounds = 64

// unlock does what has been left, gives up the lock, and then tells those who
// have been granted or refused something since it was taken, because waking
// takes far longer than deciding. What is left after that is seen by whoever
// leaves it, or here.
func (c *core) unlock() {
	var refusals []func() // published last: that waits for functions of the user's
	for rounds := 0; ; rounds++ {
		c.takeIn()
		granted := c.granted.take()
		c.mu.Unlock()
		if granted != nil {
			refusals = c.deliver(granted, refusals)
		}
		if c.mail.empty() {
			break
		}
		if rounds == maxRounds {
			go c.collect()
			break
		}
		if !c.mu.TryLock() {
			break
		}
	}
	if len(refusals) > 0 {
		c.publishAll(refusals)
	}
}

// collect does what has been left, unless somebody holds the lock and so will.
func (c *core) collect() {
	if c.mu.TryLock() {
		c.unlock()
	}
}

// leave leaves an arrival for the lock's holder. If it reports false, nobody
// held the lock, and the caller does now.
func (c *core) leave(e *entry) bool {
	// With shared slots, refusals call functions of the user's, which are to
	// surprise nobody else. And what may well start at once, because it has come
	// here for its key or weight alone, had better not be parked and woken.
	plain := e.Value.key == "" && e.Value.weight == 1
	if c.slots != nil || !plain && c.running()+int(e.Value.weight) <= int(c.limit.Load()) {
		c.lock()
		return false
	}
	if c.tryLock() {
		return false
	}
	c.mail.put(e)
	c.collect()
	return true
}

// leaveReturn leaves a slot of plain work for the lock's holder. If it reports
// false, it has not, and the caller holds the lock.
//
// A Release too many is told with the lock held, but for one at the very moment
// in which the last slot is given back elsewhere: it gets in here, and is found
// out when it is taken in. Then the process ends, as it does when a sync.Mutex
// that is not locked is unlocked.
func (c *core) leaveReturn() bool {
	for c.slots == nil {
		if c.tryLock() {
			return false
		}
		left := c.mail.returns.Load()
		if int64(c.running()) <= left {
			break // more is released than was acquired, or the holder is just counting: the lock tells
		}
		if c.mail.returns.CompareAndSwap(left, left+1) {
			c.collect()
			return true
		}
	}
	c.lock()
	return false
}

// takeIn does what has been left. The lock is held.
func (c *core) takeIn() {
	// Arrivals are taken out first and come last: whatever slot was left before
	// one of them was, by the same goroutine perhaps, is free then.
	e := c.mail.arrivals()
	if n := c.mail.returns.Load(); n > 0 {
		for range n {
			if c.running() == 0 {
				go panic("stint: Release without Acquire") // its caller has gone; see leaveReturn
			}
			c.release(1)
		}
		// Only now, so that running is never less than what is on its way back.
		c.mail.returns.Add(-n)
	}
	for e != nil {
		following := e.Value.link
		e.Value.link = nil
		if c.arrive(e) {
			c.granted.append(e)
		}
		e = following
	}
}
