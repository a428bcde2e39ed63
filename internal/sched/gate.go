package sched

import (
	"sync/atomic"

	"github.com/stintgo/stint/internal/backlog"
)

// gate is the state that admission needs without a lock, in one atomic word:
//
//	bits  0 … 31  slots in use
//	bits 32 … 38  a bit per tier whose arrivals must queue
//	bit  39       every call takes the lock: a pause, closing, shared slots,
//	              [Config.Holders], a wait for the end of all work, a function
//	              that waits to resume its slots
//	bits 40 … 63  a counter of limit changes, so that an admission that was
//	              decided under the old limits fails its compare-and-swap
//
// Taking a slot is a compare-and-swap that adds 1 while the tier's bit and bit 39 are
// clear; releasing one subtracts 1 while all of bits 32 to 39 are clear. The bits change
// with the engine's lock held. A set bit may be stale, which costs a call on the slow
// path. A clear one never is: the bit for an entry is set before the lock is released, by
// a compare-and-swap from the very word in which no slot was free for it.
type gate struct {
	word  atomic.Uint64
	caps  [Tiers]atomic.Uint32 // effective caps
	limit atomic.Uint32
}

const (
	runningMask = 1<<32 - 1
	closedShift = 32
	closedMask  = (1<<Tiers - 1) << closedShift
	slowBit     = 1 << 39
	epochOne    = 1 << 40
)

// take takes one slot for a tier if one is free below the tier's cap and nothing waits
// that goes first.
func (g *gate) take(tier int) bool {
	for {
		old := g.word.Load()
		if old&(slowBit|1<<(closedShift+tier)) != 0 || uint32(old) >= g.caps[tier].Load() {
			return false
		}
		if g.word.CompareAndSwap(old, old+1) {
			return true
		}
	}
}

// release releases one slot if nothing waits for it. It panics if no slot is in use.
func (g *gate) release() bool {
	for {
		old := g.word.Load()
		if old&(slowBit|closedMask) != 0 {
			return false
		}
		if uint32(old) == 0 {
			panic(notHeld)
		}
		if g.word.CompareAndSwap(old, old-1) {
			return true
		}
	}
}

// below reports whether fewer slots are in use than the cap of a tier.
func (g *gate) below(tier int) bool { return g.running() < int(g.caps[tier].Load()) }

// running returns the number of slots in use.
func (g *gate) running() int { return int(uint32(g.word.Load())) }

// publish makes the limits visible to calls without the lock, and voids admissions that
// were decided under the old limits.
func (g *gate) publish(b *backlog.Bounds) {
	g.limit.Store(uint32(b.Max()))
	for i, n := range b.Caps() {
		g.caps[i].Store(uint32(n))
	}
	g.word.Add(epochOne)
}
