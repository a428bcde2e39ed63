package stint

import (
	"context"

	"github.com/stintgo/stint/internal/sched"
)

// Future is the outcome of a function that runs on a scheduler's slot in a
// goroutine of its own, or what a [Promise] is settled with. All methods are safe
// for concurrent use.
type Future[T any] struct {
	call call[T]
}

// call is a function and its outcome.
type call[T any] struct {
	sched.Call

	value T
	fn    func(context.Context) (T, error)
}

// Forget lets go of the function. It is the engine's.
func (c *call[T]) Forget() { c.fn = nil }

// Do calls the function. It is the engine's.
func (c *call[T]) Do(ctx context.Context) (err error) {
	fn := c.fn
	c.fn = nil
	c.value, err = fn(ctx)
	return err
}

// Go queues fn and returns at once; fn is called when a slot is free. In a
// bounded queue that blocks, Go waits for room.
//
// fn's context ends when ctx does, when the future is cancelled, when the
// scheduler is closed by force, and in any case when fn has returned: so does
// what fn starts with it. If ctx ends before fn has been called, fn is not
// called. If fn panics, the future's error is a [*PanicError]; if it calls
// runtime.Goexit, [ErrGoexit]; and if it was not called, an error that
// [Scheduler.Acquire] describes.
func Go[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) *Future[T] {
	f := &Future[T]{call[T]{fn: fn}}
	f.call.Init(ctx, s.made())
	f.call.Go(&f.call, s.ask(s.tierFor(ctx)))
	return f
}

// TryGo is [Go] if a slot is free for fn now and nothing waits that would go first: fn
// starts in a goroutine of its own. Otherwise it returns nil and false, and fn is not called,
// now or later. So it is if ctx has ended, or s is closed or paused. TryGo does not wait, also
// not for room in a bounded queue, and within a function on the last slot it reports false.
func TryGo[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) (*Future[T], bool) {
	f := &Future[T]{call[T]{fn: fn}}
	f.call.Init(ctx, s.made())
	if !f.call.TryGo(&f.call, s.ask(s.tierFor(ctx))) {
		return nil, false
	}
	return f, true
}

// Wait returns the outcome when there is one. If ctx ends first, it returns
// the context's cause; the function goes on. A function that waits with its
// own context suspends its slot; see [Scheduler].
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	if f.call.Wait(ctx) {
		return f.outcome()
	}
	var none T
	return none, context.Cause(ctx)
}

// Done is closed when the future has an outcome.
func (f *Future[T]) Done() <-chan struct{} { return f.call.Done() }

// Cancel ends the function's context with a cause, nil meaning
// context.Canceled. A function that is still queued is not called, and the
// future's error is the cause. One that runs may still return a value. The future
// of a [Promise] fails with the cause. A settled future stays as it is.
func (f *Future[T]) Cancel(cause error) { f.call.Cancel(cause) }

// SetPriority moves the function to another tier while it is queued: to the end of that
// tier's line, of its key if it has one, as if it had arrived there now. It reports false
// if the function does not wait for a slot: it runs, has an outcome, or continues a future
// that has none yet. In the tier that it has it keeps its place. The context that the
// function is given, and so what it starts, keeps the priority that it has. SetPriority
// panics if p is not a tier.
func (f *Future[T]) SetPriority(p Priority) bool { return f.call.SetTier(p.mustValid().index()) }

// Teardown has fn called exactly once when the future has an outcome, also if
// its function never runs; at once if it has one already. Teardowns are called
// in the reverse order of their registration, before Wait returns, in the
// goroutine that settles the future; they must not block, nor wait for the future itself, whose
// outcome cannot be seen yet. If one panics or
// calls runtime.Goexit, the others are called all the same, and the future
// fails as if its function had done so.
func (f *Future[T]) Teardown(fn func()) { f.call.Teardown(fn) }

func (f *Future[T]) outcome() (T, error) { return f.call.value, f.call.Err() }
