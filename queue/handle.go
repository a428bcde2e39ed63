package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Handler does the work of a task. Its result decides the outcome of the attempt:
//
//   - nil: the task has succeeded.
//   - an error of [retry.Permanent]: the task is dead.
//   - an error of [retry.After]: the attempt has failed, and the next one starts after
//     that time.
//   - [Snooze]: the task is run again after a delay, and the attempt does not count as
//     failed.
//   - [Shortage]: the task is released, the attempt does not count as failed, and this
//     process claims fewer tasks.
//   - any other error, or a panic: the attempt has failed. The task is retried until
//     MaxAttempts attempts have failed.
//
// A handler should return soon after its context has ended. [context.Cause] returns the
// reason: [ErrPaused], [ErrCancelled], [ErrStale], [ErrStopping], [ErrTooLarge] after a
// checkpoint that is too large, that of the scheduler such as [stint.ErrClosed], or
// context.DeadlineExceeded after the task's Timeout. An error that the handler returns
// then is a failure only after the Timeout, unless it is a [Snooze], and a permanent one after
// ErrTooLarge; nil is a success in every case, unless the result is too large, see
// [Attempt.Return].
type Handler func(context.Context, *Attempt) error

// Handle sets the handler of a kind for the Runs of this queue. The handler receives the
// payload as bytes, unlike a handler of [Kind.Handle]. Handle panics if the kind is empty
// or already has a handler, if h is nil, or if Run has been called.
func (q *Queue) Handle(kind string, h Handler) {
	switch {
	case kind == "":
		panic("queue: Handle: the kind is empty")
	case h == nil:
		panic(fmt.Sprintf("queue: Handle: the handler of the kind %q is nil", kind))
	}
	q.handlers.add(kind, h)
}

// Use wraps the handlers of all kinds, also those that are set later, with middleware: a
// log line, a trace, a transaction. The middleware of the first call is the outermost. It
// may replace the context and the error of the next handler; the error of the outermost
// decides the outcome. It also runs if the payload of a task cannot be decoded. A panic of
// the middleware is a failure of the attempt, as a panic of a handler is, and a panic of
// the handler passes through the middleware.
//
// Use panics if wrap is nil or if Run has been called.
func (q *Queue) Use(wrap func(next Handler) Handler) {
	if wrap == nil {
		panic("queue: Use: the middleware is nil")
	}
	q.handlers.use(wrap)
}

// handlers are the handlers of a queue, and the middleware around them. Neither can be set
// after the first Run.
type handlers struct {
	mu         sync.Mutex
	byKind     map[string]Handler
	middleware []func(Handler) Handler
	wrapped    map[string]Handler // byKind with the middleware; nil until the first Run
}

func (s *handlers) add(kind string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.wrapped != nil:
		panic(fmt.Sprintf("queue: Handle: the handler of the kind %q is set after Run; set all handlers before it", kind))
	case s.byKind[kind] != nil:
		panic(fmt.Sprintf("queue: Handle: the kind %q already has a handler", kind))
	}
	s.byKind[kind] = h
}

func (s *handlers) use(wrap func(Handler) Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrapped != nil {
		panic("queue: Use: the middleware is set after Run; set it before")
	}
	s.middleware = append(s.middleware, wrap)
}

// freeze returns the handlers in their middleware, by kind. Neither can be set any more.
func (s *handlers) freeze() map[string]Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrapped != nil {
		return s.wrapped
	}
	wrapped := make(map[string]Handler, len(s.byKind))
	for kind, h := range s.byKind {
		for _, wrap := range slices.Backward(s.middleware) {
			h = wrap(h)
		}
		wrapped[kind] = h
	}
	s.wrapped = wrapped // not before: wrap may panic
	return wrapped
}

// The causes with which a handler's context ends, besides the task's Timeout and
// [ErrStale].
var (
	// ErrPaused: the task was paused.
	ErrPaused = errors.New("queue: the task was ordered to pause")
	// ErrCancelled: the task was cancelled.
	ErrCancelled = errors.New("queue: the task was ordered to cancel")
	// ErrStopping: Run is stopping, and has waited for [Config.Grace].
	ErrStopping = errors.New("queue: this worker is stopping")
)

// snooze is the error of Snooze.
type snooze struct{ delay time.Duration }

func (s snooze) Error() string { return fmt.Sprintf("queue: run again in %s", s.delay) }

// Snooze returns the error with which a handler asks to be called again after a delay,
// without a failure.
func Snooze(delay time.Duration) error { return snooze{delay} }

// SnoozeDelay returns the delay of an error of [Snooze]. It reports false if err does not
// wrap such an error.
func SnoozeDelay(err error) (time.Duration, bool) {
	again, ok := errors.AsType[snooze](err)
	return again.delay, ok
}

// errExited is the error of a handler that ended its goroutine.
var errExited = errors.New("the handler called runtime.Goexit")

// protect calls a handler, and converts a panic to an error.
func protect(ctx context.Context, h Handler, a *Attempt) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	return h(ctx, a)
}

// panicked returns the error for the value of a panic. A deferred function calls it, so that
// the error has the stack of the panic.
func panicked(v any) error { return fmt.Errorf("panic: %v\n\n%s", v, debug.Stack()) }
