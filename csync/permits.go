package csync

import (
	"context"
	"sync"
	"sync/atomic"
)

// waitingBit of a lock's state word says that a call waits.
const waitingBit = 1 << 63

// permits grants up to a total of permits in FIFO order. [Semaphore] consists of it, and
// so does [Mutex], with a total of 1. The caller passes the total to each call, so that
// the zero value, which has all permits free, works for both.
//
// The state word holds the number of permits taken, and waitingBit. While the
// bit is clear, taking and returning are one compare-and-swap each. While it is
// set, only the holder of mu changes the word. So later callers cannot overtake
// waiters, and the slow path can use plain stores.
type permits struct {
	state atomic.Uint64
	mu    sync.Mutex // guards queue; taken last, never held while waiting
	queue queue[uint64]
}

// try takes n permits if they are free and no call waits.
func (p *permits) try(n, total uint64) bool {
	for {
		taken := p.state.Load()
		if taken&waitingBit != 0 || n > total-taken {
			return false
		}
		if p.state.CompareAndSwap(taken, taken+n) {
			return true
		}
	}
}

// acquire waits for n permits, at most total.
func (p *permits) acquire(ctx context.Context, n, total uint64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.try(n, total) {
		return nil
	}
	done := ctx.Done()
	p.mu.Lock()
	w := p.queue.push(done, n)
	p.admitAndUnlock(p.ownLocked(), total) // at once, if they have come free since try
	if p.queue.wait(ctx, &p.mu, w) {
		p.queue.recycle(w)
		p.mu.Unlock()
		return nil
	}
	p.queue.recycle(w)
	p.admitAndUnlock(p.ownLocked(), total) // those behind w, if it held them back
	return context.Cause(ctx)
}

// release returns n permits and hands them on. It reports false, and changes
// nothing, if fewer are taken.
func (p *permits) release(n, total uint64) bool {
	for {
		taken := p.state.Load()
		if taken&waitingBit != 0 {
			return p.handOver(n, total)
		}
		if n > taken {
			return false
		}
		if p.state.CompareAndSwap(taken, taken-n) {
			return true
		}
	}
}

// handOver is release while a call waits.
func (p *permits) handOver(n, total uint64) bool {
	p.mu.Lock()
	taken := p.ownLocked()
	enough := n <= taken
	if enough {
		taken -= n
	}
	p.admitAndUnlock(taken, total)
	return enough
}

// ownLocked stops the fast path and returns the number of permits taken. From
// here on, state is the caller's until it stores it again.
func (p *permits) ownLocked() uint64 {
	return p.state.Or(waitingBit) &^ waitingBit
}

// admitAndUnlock grants the first waiters of the queue for as long as they fit,
// stores the state, and releases mu. It stops at the first that does not fit,
// whatever is behind it: passing a heavy waiter over would starve it under a
// stream of light ones.
func (p *permits) admitAndUnlock(taken, total uint64) {
	var granted, last *waiter[uint64]
	for w := p.queue.head(); w != nil && w.value <= total-taken; w = p.queue.head() {
		taken += w.value
		p.queue.grant(1)
		if last == nil {
			granted = w
		} else {
			last.next = w
		}
		last = w
	}
	if p.queue.len > 0 {
		taken |= waitingBit
	}
	p.state.Store(taken)
	p.mu.Unlock()
	granted.wake()
}

// taken returns the number of permits that are held.
func (p *permits) taken() uint64 { return p.state.Load() &^ waitingBit }

// waiting returns the number of calls in the queue.
func (p *permits) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.len
}
