package csync

import (
	"context"
	"sync"
	"sync/atomic"
)

// writerBit of an RWMutex's state word says that a writer holds it. The bits
// below count the readers that do.
const writerBit = 1 << 62

// RWMutex is a lock that many readers or one writer can hold, and whose waits
// take a context. It is phase-fair (Brandenburg and Anderson, "Spin-Based
// Reader-Writer Synchronization for Multiprocessor Real-Time Systems", 2010):
// while both wait, phases of reading and of writing take turns.
//
//   - A waiting writer holds new readers back.
//   - When a writer unlocks, all readers that wait at that moment go in
//     together, whatever writers wait. So no reader waits for more than one
//     writer to come and go, however many wait.
//   - When the last of those readers unlocks, the writer that has waited longest
//     goes in. So behind n earlier writers, a writer waits for these and for at most
//     n+1 phases of reading.
//
// It is not recursive: a goroutine that holds it for reading and asks again may
// wait for a writer that waits for the goroutine. There is no upgrade or downgrade
// between reading and writing. The zero value is an unlocked RWMutex. All
// methods may be called from many goroutines.
type RWMutex struct {
	// state counts the readers, with writerBit and waitingBit. As in permits,
	// it is changed under mu only while waitingBit is set.
	state   atomic.Uint64
	mu      sync.Mutex // guards both queues; taken last, never held while waiting
	readers queue[struct{}]
	writers queue[struct{}]
}

// RLock locks rw for reading, and waits until it can. If ctx ends first, or has ended
// before the call, it returns [context.Cause] of ctx and does not lock rw. If rw was
// handed over before ctx ended, it is locked, and RLock returns nil.
func (rw *RWMutex) RLock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if rw.TryRLock() {
		return nil
	}
	return rw.wait(ctx, &rw.readers)
}

// TryRLock locks rw for reading if no writer holds it or waits, and reports
// whether it did. It never blocks.
func (rw *RWMutex) TryRLock() bool {
	for {
		state := rw.state.Load()
		if state&(waitingBit|writerBit) != 0 {
			return false
		}
		if rw.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

// RUnlock undoes one RLock. It panics if rw is not locked for reading.
func (rw *RWMutex) RUnlock() {
	for {
		state := rw.state.Load()
		if state == 0 || state&(waitingBit|writerBit) != 0 {
			break
		}
		if rw.state.CompareAndSwap(state, state-1) {
			return
		}
	}
	if !rw.handOver(1) {
		panic("csync: RUnlock of an RWMutex that is not locked for reading")
	}
}

// Lock locks rw for writing, and waits until it can. If ctx ends first, or has ended
// before the call, it returns [context.Cause] of ctx and does not lock rw. If rw was
// handed over before ctx ended, it is locked, and Lock returns nil.
func (rw *RWMutex) Lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if rw.TryLock() {
		return nil
	}
	return rw.wait(ctx, &rw.writers)
}

// TryLock locks rw for writing if it is not held, and reports whether it did.
// It never blocks.
func (rw *RWMutex) TryLock() bool { return rw.state.CompareAndSwap(0, writerBit) }

// Unlock undoes one Lock. It panics if rw is not locked for writing.
func (rw *RWMutex) Unlock() {
	if rw.state.CompareAndSwap(writerBit, 0) {
		return
	}
	if !rw.handOver(writerBit) {
		panic("csync: Unlock of an RWMutex that is not locked for writing")
	}
}

// With calls fn while rw is locked for writing. The error is that of Lock, in
// which case fn was not called, or that of fn. rw is unlocked when fn returns,
// panics or calls [runtime.Goexit].
func (rw *RWMutex) With(ctx context.Context, fn func() error) error {
	if err := rw.Lock(ctx); err != nil {
		return err
	}
	defer rw.Unlock()
	return fn()
}

// RWith calls fn while rw is locked for reading. The error is that of RLock, in
// which case fn was not called, or that of fn. rw is unlocked when fn returns,
// panics or calls [runtime.Goexit].
func (rw *RWMutex) RWith(ctx context.Context, fn func() error) error {
	if err := rw.RLock(ctx); err != nil {
		return err
	}
	defer rw.RUnlock()
	return fn()
}

// wait is RLock or Lock in the queue q.
func (rw *RWMutex) wait(ctx context.Context, q *queue[struct{}]) error {
	done := ctx.Done()
	rw.mu.Lock()
	w := q.push(done, struct{}{})
	rw.admitAndUnlock(rw.ownLocked(), false) // at once, if it has come free since the try
	if q.wait(ctx, &rw.mu, w) {
		q.recycle(w)
		rw.mu.Unlock()
		return nil
	}
	q.recycle(w)
	rw.admitAndUnlock(rw.ownLocked(), false) // the readers that a writer held back
	return context.Cause(ctx)
}

// handOver takes holder, 1 for a reader or writerBit, out of the state and lets
// the next waiters in. It reports false, and changes nothing, if rw is not held in that
// way.
func (rw *RWMutex) handOver(holder uint64) bool {
	rw.mu.Lock()
	state := rw.ownLocked()
	held := state >= holder && state&writerBit == holder&writerBit
	if held {
		state -= holder
	}
	rw.admitAndUnlock(state, held && holder == writerBit)
	return held
}

// ownLocked stops the fast path and returns the holders of rw. From here on, state is
// the caller's until it stores it again.
func (rw *RWMutex) ownLocked() uint64 {
	return rw.state.Or(waitingBit) &^ waitingBit
}

// admitAndUnlock grants the waiters whose turn it is, stores the state, and releases
// mu. After a writer it is the turn of all readers that wait; otherwise it is the turn
// of a writer.
func (rw *RWMutex) admitAndUnlock(state uint64, afterWriter bool) {
	var granted *waiter[struct{}]
	writerWaits := rw.writers.head() != nil
	if state&writerBit == 0 && (afterWriter || !writerWaits) {
		rw.readers.dropEnded()
		state += uint64(rw.readers.len)
		granted = rw.readers.grant(rw.readers.len)
	}
	if state == 0 && writerWaits {
		state = writerBit
		granted = rw.writers.grant(1)
	}
	if rw.readers.len+rw.writers.len > 0 {
		state |= waitingBit
	}
	rw.state.Store(state)
	rw.mu.Unlock()
	granted.wake()
}
