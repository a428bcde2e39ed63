package stint

import (
	"context"
	"runtime/debug"
)

// Run waits for a slot, calls fn in the caller's goroutine and gives the slot
// back. It returns what fn returns; if fn panics, a [*PanicError]; and without
// calling fn, the errors of [Scheduler.Acquire]. If fn calls runtime.Goexit,
// the slot is given back and the caller's goroutine ends.
//
// The context that fn receives records that it runs on a slot of s, so that a Run
// within it needs no second one; see [Scheduler] on nesting. It ends when fn returns: what fn
// hands back must not depend on it, as the body of an HTTP response does.
func Run[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) (value T, err error) {
	t, parent, err := s.made().Enter(ctx, s.ask(s.tierFor(ctx)))
	if err != nil {
		return value, err
	}
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		t.Exit(parent)
	}()
	value, err = fn(t)
	returned = true
	return value, err
}

// RunWith is [Run] of a function that is handed arg, so that a hot path needs
// no closure.
func RunWith[A, T any](
	ctx context.Context, s Scheduler, fn func(context.Context, A) (T, error), arg A,
) (value T, err error) {
	t, parent, err := s.made().Enter(ctx, s.ask(s.tierFor(ctx)))
	if err != nil {
		return value, err
	}
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		t.Exit(parent)
	}()
	value, err = fn(t, arg)
	returned = true
	return value, err
}

// caught makes an error of what recover returned in a function that did not
// return by itself.
func caught(value any) error {
	if value == nil {
		return ErrGoexit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}
