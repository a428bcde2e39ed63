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

// Mutex is a lock that processes share. Who waits is served by the priority of
// its context, and in the order of arrival; see [Slots] for that of processes. It
// is not recursive. All methods may be called from many goroutines: a process
// holds the lock, not a goroutine, so one may lock it and another unlock it.
//
// A process that dies while it holds the lock leaves it free, and whoever has it
// next is told: what the lock protects may be in the middle of a change.
type Mutex struct {
	slots  *Slots
	queue  stint.Scheduler // of the one slot
	locked atomic.Bool     // by this process,
	permit stint.Permit    // with this
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

// Lock locks m, and waits until it can or ctx ends. abandoned says that whoever
// held it last has died, or closed its region, without unlocking it. The error is
// [context.Cause] of ctx, or [ErrClosed]; then the lock is not held.
func (m *Mutex) Lock(ctx context.Context) (abandoned bool, err error) {
	p, err := m.queue.Acquire(ctx)
	if err != nil {
		return false, err
	}
	return m.own(p), nil
}

// TryLock locks m if it is free and nobody of normal priority or a higher one
// waits for it, and reports whether it did. It does not block. abandoned is that of
// [Mutex.Lock]. It does not tell why it did not: of a closed region too the lock is
// not to be had, and [Mutex.Lock] says so.
func (m *Mutex) TryLock() (locked, abandoned bool) {
	p, ok := m.queue.TryAcquire(context.Background())
	if !ok {
		return false, false
	}
	return true, m.own(p)
}

// own marks m as locked by this process and reports whether the lock was abandoned. It
// reads that first: once locked is set another goroutine may unlock m and lock it again,
// which overwrites abandoned.
func (m *Mutex) own(p stint.Permit) (abandoned bool) {
	abandoned = m.slots.abandoned
	m.permit = p
	m.locked.Store(true)
	return abandoned
}

// Unlock unlocks m and wakes who is next. It fails with [ErrNotLocked] if this
// process does not hold it, and then does nothing; and with [ErrClosed] if the region
// was closed meanwhile: the lock went with it, so others may have had it since.
func (m *Mutex) Unlock() error {
	if !m.locked.CompareAndSwap(true, false) {
		return ErrNotLocked
	}
	gone := m.slots.region.closed.Load()
	p := m.permit // another may have the lock, and its permit here, before Release returns
	p.Release()
	if gone {
		return ErrClosed
	}
	return nil
}
