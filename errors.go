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
	// ErrClosed is the error of entries that are queued when a scheduler is closed,
	// and of every later call.
	ErrClosed = sched.ErrClosed
	// ErrNoCapacity is the error of entries under a limit of 0, which could never run.
	ErrNoCapacity = sched.ErrNoCapacity
	// ErrQueueFull is the error of an entry for which a bounded queue has no room, if
	// the scheduler is configured to [Refuse].
	ErrQueueFull = sched.ErrQueueFull
	// ErrTooHeavy is wrapped by the error of an entry whose weight is above the
	// limit, or above 1 with shared slots, so that it could never run. The message
	// says what to do.
	ErrTooHeavy = sched.ErrTooHeavy
	// ErrCleared is the error of the entries that [Scheduler.Clear] removes from the
	// queue.
	ErrCleared = sched.ErrCleared
	// ErrSlotLost is the cause of the cancellation of work whose shared slot
	// was taken away.
	ErrSlotLost = sched.ErrSlotLost
	// ErrGoexit is the error of a function that called [runtime.Goexit] (as
	// testing.T.FailNow does) instead of returning.
	ErrGoexit = errors.New("stint: function called runtime.Goexit")
	// ErrNegative is the error of a request for a negative number of tokens.
	ErrNegative = errors.New("stint: negative number of tokens")
)

// DeadlineError is the error of a wait for tokens that would be longer than the context's
// deadline allows. It wraps [context.DeadlineExceeded].
type DeadlineError struct {
	Wait time.Duration // the minimum wait for the tokens
}

// Error says how long the wait would be.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("stint: the tokens are available in %v at the earliest, after the context's deadline", e.Wait)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }

// PanicError is the error of a function that panicked. The function's slot has been
// released. It is also the value of the panic with which the range of a [Map] passes on a
// panic of its inputs.
type PanicError struct {
	Value any    // the value that was passed to panic
	Stack []byte // the stack of the panic, as runtime/debug.Stack gives it
}

// Error gives the panic's value and its stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("stint: function panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value that was passed to panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
