package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// TestHandlersHearOfTheirEnd: whatever way a handler looks at its context, it sees
// that it is to stop, and why: it need not have looked before.
func TestHandlersHearOfTheirEnd(t *testing.T) {
	type key struct{}
	ways := map[string]func(context.Context) error{
		"Done": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"Err": func(ctx context.Context) error {
			for ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			return ctx.Err()
		},
		"late": func(ctx context.Context) error {
			time.Sleep(time.Minute)
			<-ctx.Done()
			return ctx.Err()
		},
		"AfterFunc": func(ctx context.Context) error {
			ended := make(chan struct{})
			context.AfterFunc(ctx, func() { close(ended) })
			<-ended
			return ctx.Err()
		},
		"child": func(ctx context.Context) error {
			child, stop := context.WithTimeout(context.WithValue(ctx, key{}, true), time.Hour)
			defer stop()
			<-child.Done()
			return child.Err()
		},
	}
	for name, look := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{})
				var err, cause error
				r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error {
					err = look(ctx)
					cause = context.Cause(ctx)
					return err
				})
				r.start()
				id := r.submit("k", queue.Options{})
				r.is(id, queue.Running)
				r.command(queue.OrderCancel, id)
				time.Sleep(2 * time.Minute)
				r.is(id, queue.Cancelled)
				if !errors.Is(err, context.Canceled) || !errors.Is(cause, queue.ErrCancelled) {
					t.Errorf("the context ended with %v, because of %v", err, cause)
				}
				r.end()
			})
		})
	}
}

// The context of a handler ends with the handler, also if its Done is first called after
// that. The context of the next task on that runner does not.
func TestContextsEndWithTheirHandlers(t *testing.T) {
	for name, early := range map[string]bool{"looked before": true, "looks afterwards": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{})
				var left []context.Context
				r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error {
					if early {
						_ = ctx.Done()
					}
					left = append(left, ctx)
					return ctx.Err()
				})
				r.start()
				for range 3 {
					r.is(r.submit("k", queue.Options{}), queue.Succeeded)
				}
				for _, ctx := range left {
					if ctx.Err() == nil {
						t.Error("its Err is nil")
					}
					<-ctx.Done()
					if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("it ended because of %v", err)
					}
				}
				r.end()
			})
		})
	}
}
