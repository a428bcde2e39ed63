package sched

import "errors"

// Errors of the engine, under the names that they have in the root package.
var (
	// ErrClosed is the error of all waiting work when an engine is closed, and of every later call.
	ErrClosed = errors.New("stint: scheduler is closed")
	// ErrNoCapacity is the error of work under a limit of 0.
	ErrNoCapacity = errors.New("stint: the limit is 0, so nothing can run; raise it with Resize")
	// ErrQueueFull is the error of an arrival that a bounded queue refuses.
	ErrQueueFull = errors.New("stint: queue is full")
	// ErrTooHeavy is wrapped by the error of work whose weight is above the limit.
	ErrTooHeavy = errors.New("stint: the weight is too large to run at all")
	// ErrCleared is the error of the entries that Clear removes.
	ErrCleared = errors.New("stint: cleared from the queue")
	// ErrSlotLost is the cause that ends work whose shared slot was taken away.
	ErrSlotLost = errors.New("stint: the shared slot was taken away")
	// ErrNoSlot is what Slots return when no slot is free.
	ErrNoSlot = errors.New("stint: no shared slot is free")
)

// errLeft is the error of a waiting goroutine whose context ended before a slot came free.
// The goroutine returns the context's cause instead.
var errLeft = errors.New("the context has ended")
