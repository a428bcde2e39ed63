package stint

// The state that admission needs without a lock is one atomic word:
//
//	bits  0 … 31  slots in use
//	bits 32 … 38  a bit per tier whose arrivals must queue
//	bits 39 … 45  a bit per tier that has jobs in the inbox
//	bit  46       everybody takes the slow path: closing, shared slots …
//	bit  47       a task has lent its slot, so that there may be tasks while no slot is in use
//	bit  48       paused: the slow path too, but that jobs may be posted
//	bits 49 … 63  changes of the limits, counted, so that an admission that was
//	              decided under the old limits fails its compare-and-swap
//
// Taking a slot is a compare-and-swap that adds 1 while the tier's bits and bits
// 46 and 48 are clear; giving one back subtracts 1 while all of these are clear.
// Bits are set and cleared with the core's lock held, but for those of the
// inbox, which are set with the inbox's. A set bit may be stale and costs a visit
// to the slow path. A clear one never is: an entry's bit is set before the lock
// is given up, by a compare-and-swap from the very word in which no slot was
// free for it, or when a posted job is drawn.
const (
	runningMask = 1<<32 - 1
	closedShift = 32
	closedMask  = (1<<Tiers - 1) << closedShift
	postedShift = closedShift + Tiers
	postedMask  = (1<<Tiers - 1) << postedShift
	slowBit     = 1 << 46
	lentBit     = 1 << 47
	pausedBit   = 1 << 48
	epochOne    = 1 << 49
)

// takeFast takes one slot for a tier if that needs no lock: one is free below
// the tier's cap and nothing waits before it.
func (c *core) takeFast(tier int) bool {
	for {
		old := c.word.Load()
		if old&(slowBit|pausedBit|1<<(closedShift+tier)|1<<(postedShift+tier)) != 0 || uint32(old) >= c.caps[tier].Load() {
			return false
		}
		if c.word.CompareAndSwap(old, old+1) {
			return true
		}
	}
}

// giveFast gives one slot back if nobody waits for it.
func (c *core) giveFast() bool {
	for {
		old := c.word.Load()
		if old&(slowBit|pausedBit|closedMask|postedMask) != 0 {
			return false
		}
		if uint32(old) == 0 {
			panic("stint: Release without Acquire")
		}
		if c.word.CompareAndSwap(old, old-1) {
			return true
		}
	}
}

// running is the number of slots in use.
func (c *core) running() int { return int(uint32(c.word.Load())) }
