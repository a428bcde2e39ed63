package stint

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that the scheduler and what is built on it return. They are compared
// with [errors.Is].
var (
	// ErrClosed answers whatever is queued when a scheduler is closed, and
	// every call after that.
	ErrClosed = errors.New("stint: scheduler is closed")
	// ErrNoCapacity answers entries under a limit of 0, which could never run.
	ErrNoCapacity = errors.New("stint: the limit is 0, so nothing can run; raise it with Resize")
	// ErrQueueFull answers an entry that a bounded queue has no room for, where
	// the scheduler was configured to refuse.
	ErrQueueFull = errors.New("stint: queue is full")
	// ErrTooHeavy answers an entry whose weight is above the limit, so that it
	// could never run.
	ErrTooHeavy = errors.New("stint: weight is above the limit")
	// ErrCleared answers the entries that [Scheduler.Clear] takes out of the
	// queue.
	ErrCleared = errors.New("stint: cleared from the queue")
	// ErrSlotLost is the cause of the cancellation of work whose shared slot
	// was taken away.
	ErrSlotLost = errors.New("stint: the shared slot was taken away")
	// ErrGoexit is the error of a function that called [runtime.Goexit] (as
	// testing.T.FailNow does) instead of returning.
	ErrGoexit = errors.New("stint: function called runtime.Goexit")
	// ErrNegative answers a request for a negative number of tokens.
	ErrNegative = errors.New("stint: negative number of tokens")
)

// errLeft answers a goroutine whose context ended before a slot came free. It returns the
// context's cause instead.
var errLeft = errors.New("the context has ended")

// DeadlineError is the error of a wait for tokens that would be longer than the context's
// deadline allows. It wraps [context.DeadlineExceeded].
type DeadlineError struct {
	Wait time.Duration // how long it would be, at the least
}

// Error says how long the wait would be.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("stint: the tokens take %v at least, and the deadline is before that", e.Wait)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// PanicError is the error of a function that panicked. Its slot has been given
// back.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // the stack of the panic, as runtime/debug.Stack gives it
}

// Error gives the panic's value and its stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("stint: function panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value that the function panicked with if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
