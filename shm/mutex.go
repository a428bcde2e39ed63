package shm

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/stintgo/stint"
)

// ErrNotLocked is returned by [Mutex.Unlock] if this process does not hold the
// lock.
var ErrNotLocked = errors.New("shm: the mutex is not locked by this process")

// Mutex is a lock that processes share. Waiters of a process are served by the priority
// of their contexts, and in the order of arrival; for the order among processes see
// [Slots]. It is not recursive. All methods may be called from any goroutine: the lock
// belongs to the process, not to a goroutine, so one goroutine may lock it and another
// unlock it.
//
// If a process dies while it holds the lock, the lock becomes free, and Lock reports it
// as abandoned to the next holder: the data that it protects may be inconsistent. A call of
// Lock or Unlock during which the region is closed may leave this mark, too.
type Mutex struct {
	slots  *Slots
	queue  stint.Scheduler // a scheduler of one slot
	locked atomic.Bool     // by this process
	permit stint.Permit    // of the slot while locked
}

func newMutex(slots *Slots) *Mutex {
	return &Mutex{slots: slots, queue: stint.New(1, stint.Config{Slots: slots})}
}

// Mutex returns a mutex, counted from 0. It panics if the geometry has no such
// mutex.
func (r *Region) Mutex(i int) *Mutex {
	mustHave("mutex", i, len(r.mutexes))
	return r.mutexes[i]
}

// Lock locks m. It blocks until m is free or ctx ends. abandoned reports that the
// previous holder died, or closed its region, without unlocking m. The error is
// [context.Cause] of ctx, or [ErrClosed]; then the lock is not held.
func (m *Mutex) Lock(ctx context.Context) (abandoned bool, err error) {
	p, err := m.queue.Acquire(ctx)
	if err != nil {
		return false, err
	}
	return m.own(p), nil
}

// TryLock locks m if it is free and no caller of normal or higher priority waits for it,
// and reports whether it did. It does not block. abandoned is as for [Mutex.Lock]. If the
// region is closed, locked is false; [Mutex.Lock] returns that error.
func (m *Mutex) TryLock() (locked, abandoned bool) {
	p, ok := m.queue.TryAcquire(context.Background())
	if !ok {
		return false, false
	}
	return true, m.own(p)
}

// own marks m as locked by this process and reports whether the lock was abandoned. It
// reads abandoned first: once locked is set, another goroutine may unlock m and lock it
// again, which overwrites abandoned.
func (m *Mutex) own(p stint.Permit) (abandoned bool) {
	abandoned = m.slots.abandoned
	m.permit = p
	m.locked.Store(true)
	return abandoned
}

// Unlock unlocks m and wakes the next waiter. If this process does not hold m, it does
// nothing and returns [ErrNotLocked]. It returns [ErrClosed] if the region was closed
// meanwhile: Close released the lock, so other processes may have held it since.
func (m *Mutex) Unlock() error {
	if !m.locked.CompareAndSwap(true, false) {
		return ErrNotLocked
	}
	gone := m.slots.region.closed.Load()
	p := m.permit // before Release returns another goroutine may lock m and overwrite permit
	p.Release()
	if gone {
		return ErrClosed
	}
	return nil
}
