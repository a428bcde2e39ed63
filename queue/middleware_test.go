package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

type ctxKey struct{}

// noting is middleware that writes down what passes through it.
func noting(name string, notes *[]string) func(queue.Handler) queue.Handler {
	return func(next queue.Handler) queue.Handler {
		return func(ctx context.Context, a *queue.Attempt) error {
			*notes = append(*notes, fmt.Sprintf("%s before %s", name, a.Kind))
			err := next(context.WithValue(ctx, ctxKey{}, name), a)
			*notes = append(*notes, fmt.Sprintf("%s after %s: %v", name, a.Kind, err))
			return err
		}
	}
}

// The first middleware is the outermost, whether it was given before the handler
// or after it.
func TestC1_MiddlewareInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		var notes []string
		r.Use(noting("first", &notes))
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			notes = append(notes, fmt.Sprint("handler within ", ctx.Value(ctxKey{})))
			return retry.Permanent(errOver)
		})
		r.Use(noting("second", &notes))
		r.start()
		r.is(r.submit("k", queue.Options{}), queue.Dead)
		want := []string{
			"first before k", "second before k", "handler within second",
			"second after k: the test is over", "first after k: the test is over",
		}
		if !slices.Equal(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
		r.end()
	})
}

// What the outermost middleware returns decides, and it sees tasks whose payload
// cannot be read as well.
func TestC1_MiddlewareDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		var seen error
		r.Use(func(next queue.Handler) queue.Handler {
			return func(ctx context.Context, a *queue.Attempt) error {
				seen = next(ctx, a)
				if err := a.Return("what the middleware says"); err != nil {
					return err
				}
				return nil
			}
		})
		queue.Kind[int]("k").Handle(r.Queue, func(context.Context, *queue.Job[int]) error { return nil })
		r.start()
		task := r.is(r.prepared(queue.Spec{Kind: "k", Payload: []byte(`"no number"`)}), queue.Succeeded)
		if !retry.IsPermanent(seen) || !strings.Contains(seen.Error(), `kind "k"`) {
			t.Errorf("the middleware saw %v", seen)
		}
		if said, err := queue.Result[string](task); err != nil || said != "what the middleware says" {
			t.Errorf("result %q, error %v", said, err)
		}
		r.end()
	})
}

// Middleware that does not return is a failure of the task, with its stack.
func TestC1_MiddlewareThatPanics(t *testing.T) {
	for name, fail := range map[string]func(){
		"middleware_test.go": func() { panic("oh no") },
		"Goexit":             runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, queue.Config{})
			r.Use(func(queue.Handler) queue.Handler {
				return func(context.Context, *queue.Attempt) error { fail(); return nil }
			})
			queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error { return nil })
			r.start()
			task := r.is(r.submit("k", queue.Options{MaxAttempts: 1}), queue.Dead)
			if !strings.Contains(task.Error, name) {
				t.Errorf("error %q, want one with %q", task.Error, name)
			}
			r.end()
		})
	}
}

// A Run whose middleware panics while it wraps the handlers leaves them as they were: the next
// Run wraps all of them, once.
func TestC1_MiddlewareThatPanicsAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		outer, inner, wraps := 0, 0, 0
		r.Use(func(next queue.Handler) queue.Handler {
			if wraps++; wraps == 2 {
				panic("not ready")
			}
			return func(ctx context.Context, a *queue.Attempt) error { outer++; return next(ctx, a) }
		})
		r.Use(func(next queue.Handler) queue.Handler {
			return func(ctx context.Context, a *queue.Attempt) error { inner++; return next(ctx, a) }
		})
		for _, kind := range []string{"a", "b"} {
			r.Handle(kind, func(context.Context, *queue.Attempt) error { return nil })
		}
		wantPanic(t, "the first Run", func() { _ = r.Queue.Run(t.Context(), r.slots) })
		r.start()
		for _, kind := range []string{"a", "b"} {
			r.is(r.submit(kind, queue.Options{}), queue.Succeeded)
		}
		if outer != 2 || inner != 2 {
			t.Errorf("of two tasks, the middleware ran for %d and %d", outer, inner)
		}
		r.end()
	})
}

func TestC1_HandlersAreGivenBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		h := func(context.Context, *queue.Attempt) error { return errors.New("not called") }
		r.Handle("k", h)
		wantPanic(t, "a second handler", func() { r.Handle("k", h) })
		wantPanic(t, "no kind", func() { r.Handle("", h) })
		wantPanic(t, "no handler", func() { r.Handle("other", nil) })
		wantPanic(t, "no handler of a Go value", func() { queue.Kind[int]("other").Handle(r.Queue, nil) })
		wantPanic(t, "no middleware", func() { r.Use(nil) })
		r.start()
		wantPanic(t, "late", func() { r.Handle("late", h) })
		wantPanic(t, "late middleware", func() { r.Use(func(next queue.Handler) queue.Handler { return next }) })
		r.end()
	})
}

func wantPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}
