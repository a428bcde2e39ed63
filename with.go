package stint

import (
	"context"

	"github.com/stintgo/stint/internal/sched"
)

// callWith is a future with an argument for its function, in one allocation.
type callWith[A, T any] struct {
	*sched.Call // of the future

	future Future[T]
	fn     func(context.Context, A) (T, error)
	arg    A
}

// Forget drops the function and its argument; see [sched.Job].
func (c *callWith[A, T]) Forget() {
	var none A
	c.fn, c.arg = nil, none
}

// Do calls the function; see [sched.Job].
func (c *callWith[A, T]) Do(ctx context.Context) (err error) {
	fn, arg := c.fn, c.arg
	c.Forget()
	c.future.call.value, err = fn(ctx, arg)
	return err
}

// GoWith is [Go] with an argument that is passed to fn, so that a hot path needs no
// closure: the future is the only allocation. The future keeps arg until fn is called
// or refused.
func GoWith[A, T any](ctx context.Context, s Scheduler, fn func(context.Context, A) (T, error), arg A) *Future[T] {
	c := &callWith[A, T]{fn: fn, arg: arg}
	c.Call = &c.future.call.Call
	c.Init(ctx, s.made())
	c.Go(c, s.ask(s.tierFor(ctx)))
	return &c.future
}
