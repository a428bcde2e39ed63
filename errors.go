package stint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/sched"
)

// Errors that the scheduler and what is built on it return. They are compared
// with [errors.Is].
var (
	// ErrClosed answers whatever is queued when a scheduler is closed, and
	// every call after that.
	ErrClosed = sched.ErrClosed
	// ErrNoCapacity answers entries under a limit of 0, which could never run.
	ErrNoCapacity = sched.ErrNoCapacity
	// ErrQueueFull answers an entry that a bounded queue has no room for, where
	// the scheduler was configured to refuse.
	ErrQueueFull = sched.ErrQueueFull
	// ErrTooHeavy is wrapped by the answer to an entry whose weight is above the
	// limit, or above 1 with shared slots, so that it could never run. The answer
	// says what to do.
	ErrTooHeavy = sched.ErrTooHeavy
	// ErrCleared answers the entries that [Scheduler.Clear] takes out of the
	// queue.
	ErrCleared = sched.ErrCleared
	// ErrSlotLost is the cause of the cancellation of work whose shared slot
	// was taken away.
	ErrSlotLost = sched.ErrSlotLost
	// ErrGoexit is the error of a function that called [runtime.Goexit] (as
	// testing.T.FailNow does) instead of returning.
	ErrGoexit = errors.New("stint: function called runtime.Goexit")
	// ErrNegative answers a request for a negative number of tokens.
	ErrNegative = errors.New("stint: negative number of tokens")
)

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
