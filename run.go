package stint

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Run waits for a slot, calls fn in the caller's goroutine and releases the
// slot. It returns the value and error of fn; if fn panics, a [*PanicError]; and
// if it gets no slot and does not call fn, the errors of [Scheduler.Acquire]. If fn
// calls runtime.Goexit, the slot is released and the caller's goroutine ends.
//
// The context that fn receives records that fn runs on a slot of s, so that a Run
// within fn needs no second slot; see [Scheduler] on nesting. The context ends when
// fn returns, so the value of fn must not depend on it, as the body of an HTTP
// response does.
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

// RunWith is [Run] with an argument that is passed to fn, so that a hot path
// needs no closure.
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

// caught converts the result of recover to an error, for a function that has
// panicked or has ended its goroutine.
func caught(value any) error {
	if value == nil {
		return ErrGoexit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// mustReturn calls fn, a function of the user's with a name, with a scheduler's lock held. If fn
// panics or ends its goroutine, the program ends: the lock would stay held, and a caller might
// recover the panic.
func mustReturn(name string, fn func()) {
	returned := false
	defer func() {
		if !returned {
			failStop(name, recover())
		}
	}()
	fn()
	returned = true
}

// failStop ends the program because the function with this name has panicked or has ended its
// goroutine. recovered is the result of recover.
func failStop(name string, recovered any) {
	go panic(fmt.Errorf("stint: %s must return, since the scheduler's lock is held: %w", name, caught(recovered)))
	select {} // the panic of the other goroutine ends the program
}
