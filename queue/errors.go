package queue

import "errors"

// What a call can be answered. Errors wrap these with what was asked for.
var (
	// ErrInvalid: what was asked makes no sense; the message says why.
	ErrInvalid = errors.New("queue: invalid")
	// ErrNotFound: there is no such task or schedule. A task may have been forgotten.
	ErrNotFound = errors.New("queue: not found")
	// ErrState: the state of the task does not allow it. [Queue.Pause], [Queue.Resume],
	// [Queue.Cancel] and [Queue.Retry] return it; the message names the state.
	ErrState = errors.New("queue: the state of the task does not allow it")
	// ErrFull: the queue has as many unfinished tasks as it may have.
	ErrFull = errors.New("queue: the queue is full")
	// ErrTooLarge: a payload, a result or a checkpoint is over its limit.
	ErrTooLarge = errors.New("queue: too large")
	// ErrStale: the caller's lease of the task is over. Another worker may run it,
	// or it may be finished; the caller's outcome does not count.
	ErrStale = errors.New("queue: the lease is over")
	// ErrChanged: the schedule, or the settings, are no longer what the caller has
	// read. Read them again.
	ErrChanged = errors.New("queue: it has been changed since it was read")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("queue: closed")
	// ErrUnavailable: the store cannot be reached, or takes nothing at present, as
	// with a full disk. What was asked has not been done, or is not known to be.
	ErrUnavailable = errors.New("queue: the store is unavailable")
)
