package csync

import (
	"context"
	"errors"
	"fmt"
)

// ErrTooHeavy is wrapped by the error for a weight above a semaphore's total,
// which could never be acquired.
var ErrTooHeavy = errors.New("csync: weight is above the semaphore's total")

// Semaphore is a weighted semaphore: holders share a total, each with a weight
// of its own. Waiting is strictly first in, first out. The first waiter is never
// passed over, not even by a later one whose weight would fit; so a heavy Acquire
// waits only for the calls before it. The price is that some of the total may be
// idle while the first waiter waits for more.
//
// A semaphore is made by [NewSemaphore]; the zero value has a total of 0. All
// methods may be called from many goroutines. All of them panic on a negative
// weight.
type Semaphore struct {
	permits permits
	total   uint64 // immutable
}

// NewSemaphore returns a semaphore whose holders' weights are never above total
// in sum. It panics if total is negative.
func NewSemaphore(total int64) *Semaphore {
	return &Semaphore{total: weight(total)}
}

// Acquire takes n of the total, and waits until it can. If ctx ends first, or has
// ended before the call, it returns [context.Cause] of ctx and takes nothing. If n was
// handed over before ctx ended, it is taken, and Acquire returns nil. An n above the
// total is refused at once with an error that wraps [ErrTooHeavy]. An n of 0 takes
// nothing, but waits for the calls before it.
func (s *Semaphore) Acquire(ctx context.Context, n int64) error {
	w := weight(n)
	if w > s.total {
		return fmt.Errorf("%w: acquire %d of %d", ErrTooHeavy, n, s.total)
	}
	return s.permits.acquire(ctx, w, s.total)
}

// TryAcquire takes n of the total if that much is free and no call waits, and
// reports whether it did. It never blocks.
func (s *Semaphore) TryAcquire(n int64) bool { return s.permits.try(weight(n), s.total) }

// Release releases n, and grants the next waiters what they wait for. It panics if
// less than n is held.
func (s *Semaphore) Release(n int64) {
	if !s.permits.release(weight(n), s.total) {
		panic(fmt.Sprintf("csync: Release(%d) of a Semaphore of which less is held", n))
	}
}

// With calls fn while n of the total is held. The error is that of Acquire, in
// which case fn was not called, or that of fn. n is released when fn returns,
// panics or calls [runtime.Goexit].
func (s *Semaphore) With(ctx context.Context, n int64, fn func() error) error {
	if err := s.Acquire(ctx, n); err != nil {
		return err
	}
	defer s.Release(n)
	return fn()
}

// Total returns the total.
func (s *Semaphore) Total() int64 { return int64(s.total) }

// Available returns how much of the total is not held at the moment. While a
// goroutine waits, others cannot acquire it.
func (s *Semaphore) Available() int64 { return int64(s.total - s.permits.taken()) }

// Waiting returns how many calls of Acquire wait at the moment.
func (s *Semaphore) Waiting() int { return s.permits.waiting() }

// weight returns n as the state word counts it.
func weight(n int64) uint64 {
	if n < 0 {
		panic(fmt.Sprintf("csync: a semaphore's weight of %d; use 0 or more", n))
	}
	return uint64(n)
}
