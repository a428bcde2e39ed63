package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Handler does the work of a task. What it returns decides:
//
//   - nil: the task has succeeded.
//   - an error of [retry.Permanent]: it is dead.
//   - an error of [retry.After]: it has failed, and is tried again after that time.
//   - [Snooze]: it is tried again after a time, and has not failed.
//   - [Shortage]: it is given back, and has not failed; this process claims less.
//   - any other error, or a panic: it has failed, and is tried again later until
//     it has failed MaxAttempts times.
//
// When its context ends it should return soon. [context.Cause] says why:
// [ErrPaused], [ErrCancelled], [ErrStale], [ErrStopping], or context.DeadlineExceeded
// after the task's Timeout. An error that it returns then counts as a failure only
// in the last case; nil is a success in any.
type Handler func(context.Context, *Attempt) error

// Handle sets the handler of a kind for the Runs of this queue. The handler reads the
// payload as bytes; that of [Kind.Handle] gets a Go value. It panics if the kind has a
// handler, or if Run has been called.
func (q *Queue) Handle(kind string, h Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handlers[kind] != nil || q.ran || kind == "" || h == nil {
		panic(fmt.Sprintf("queue: Handle(%q): a kind has one handler, given before Run", kind))
	}
	q.handlers[kind] = h
}

// Use puts something around the handlers of all kinds, whether they have been
// given before or will be: a log line, a trace, a transaction. The first one
// that is given is the outermost. It sees the context that the handler gets, and
// may give it another made of that; the task, also if its payload cannot be
// read; and the error, which it may replace: what the outermost returns decides.
// A panic in it is a failure of the task, as in a handler; one of the handler
// passes through it.
//
// It panics if Run has been called.
func (q *Queue) Use(wrap func(next Handler) Handler) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ran || wrap == nil {
		panic("queue: Use: middleware is given before Run")
	}
	q.around = append(q.around, wrap)
}

// settleHandlers puts the middleware around the handlers, which stay as they
// are from now on. The lock is held.
func (q *Queue) settleHandlers() {
	if q.ran {
		return
	}
	q.ran = true
	for kind, h := range q.handlers {
		for _, wrap := range slices.Backward(q.around) {
			h = wrap(h)
		}
		q.handlers[kind] = h
	}
}

// What ends a handler's context, besides its task's Timeout and [ErrStale].
var (
	// ErrPaused: the task was paused.
	ErrPaused = errors.New("queue: the task was ordered to pause")
	// ErrCancelled: the task was cancelled.
	ErrCancelled = errors.New("queue: the task was ordered to cancel")
	// ErrStopping: Run is to return, and has waited as long as [Config.Grace].
	ErrStopping = errors.New("queue: this worker is stopping")
)

// snooze is an error that is no failure.
type snooze struct{ delay time.Duration }

func (s snooze) Error() string { return fmt.Sprintf("queue: again in %s", s.delay) }

// Snooze returns what a handler returns to be called again after a delay,
// without having failed.
func Snooze(delay time.Duration) error { return snooze{delay} }

// SnoozeDelay returns the delay that an error of [Snooze] asks for. It reports
// false if err is no such error, and wraps none.
func SnoozeDelay(err error) (time.Duration, bool) {
	again, ok := errors.AsType[snooze](err)
	return again.delay, ok
}

// errExited is the error of a handler that ended its goroutine.
var errExited = errors.New("the handler called runtime.Goexit")

// protect calls a handler, and makes an error of a panic.
func protect(ctx context.Context, h Handler, a *Attempt) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
		}
	}()
	return h(ctx, a)
}
