package stint

import (
	"context"

	"github.com/stintgo/stint/internal/sched"
)

// Future is the outcome of a function that runs on a scheduler's slot in a
// goroutine of its own, or the outcome of a [Promise]. The methods of the zero Future
// panic. All methods are safe for concurrent use.
type Future[T any] struct {
	call call[T]
}

// call is a function and its outcome.
type call[T any] struct {
	sched.Call

	value T
	fn    func(context.Context) (T, error)
}

// Forget drops the function; see [sched.Job].
func (c *call[T]) Forget() { c.fn = nil }

// Do calls the function; see [sched.Job].
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
// scheduler is closed by force, and in any case when fn returns, so work that fn
// starts with it ends then too. If ctx ends before fn has been called, fn is not
// called. If fn panics, the future's error is a [*PanicError]; if fn calls
// runtime.Goexit, [ErrGoexit]; and if fn is not called, one of the errors of
// [Scheduler.Acquire].
func Go[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) *Future[T] {
	f := &Future[T]{call[T]{fn: fn}}
	f.call.Init(ctx, s.made())
	f.call.Go(&f.call, s.ask(s.tierFor(ctx)))
	return f
}

// TryGo is [Go] if a slot is free for fn now and no waiting entry goes first: fn starts in
// a goroutine of its own. Otherwise, and also if ctx has ended or s is closed or paused, it
// returns nil and false, and fn is never called. TryGo does not wait, not even for room in a
// bounded queue. Within a function that has the last slot, it reports false.
func TryGo[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) (*Future[T], bool) {
	f := &Future[T]{call[T]{fn: fn}}
	f.call.Init(ctx, s.made())
	if !f.call.TryGo(&f.call, s.ask(s.tierFor(ctx))) {
		return nil, false
	}
	return f, true
}

// made returns the future's call, and panics if f is the zero Future or nil.
func (f *Future[T]) made() *call[T] {
	if f == nil || !f.call.Made() {
		panic("stint: zero Future: make one with Go or NewPromise")
	}
	return &f.call
}

// Wait waits for the outcome and returns it. If ctx ends first, Wait returns
// the context's cause, and the function continues. A function that waits with
// its own context, or one derived from it, suspends its slot; see [Scheduler].
// It gets a slot again before Wait returns, also if ctx ends meanwhile: if other work
// has taken the slot, Wait returns only when a slot comes free.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	if f.made().Wait(ctx) {
		return f.outcome()
	}
	var none T
	return none, context.Cause(ctx)
}

// Done is closed when the future has an outcome.
func (f *Future[T]) Done() <-chan struct{} { return f.made().Done() }

// Cancel ends the function's context with a cause, nil meaning
// context.Canceled. It does not wait for a function that runs. A function that is
// still queued is not called: its teardowns are called before Cancel returns, and the
// future's error is the cause. A function that runs may still return a value. The
// future of a [Promise] fails with the cause. A settled future does not change.
func (f *Future[T]) Cancel(cause error) { f.made().Cancel(cause) }

// SetPriority moves the function to tier p while it is queued, as if it had arrived there
// now: to the end of the queue that its key has in that tier. If it is in tier p already,
// it keeps its place. SetPriority reports false if the function does not wait for a slot:
// it runs, has an outcome, or continues a future that has none yet. The priority in the
// function's context stays the same, and so does that of work which the function starts
// with it. SetPriority panics if p is not a tier.
func (f *Future[T]) SetPriority(p Priority) bool { return f.made().SetTier(p.mustValid().index()) }

// Teardown registers fn to be called exactly once when the future has an
// outcome, also if its function never runs. If the future has an outcome
// already, Teardown calls fn at once. Teardowns are called in the reverse order
// of their registration, before Wait returns, in the goroutine that settles the
// future. They must not block, nor wait for the future itself, whose outcome is
// not published yet. If one panics or calls runtime.Goexit, the others are
// called all the same, and the future's error wraps the [*PanicError] or
// [ErrGoexit], in addition to the error of the function; the value stays. A panic
// of a teardown that is called at once is not caught.
func (f *Future[T]) Teardown(fn func()) { f.made().Teardown(fn) }

func (f *Future[T]) outcome() (T, error) { return f.call.value, f.call.Err() }
