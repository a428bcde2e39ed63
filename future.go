package stint

import (
	"context"
	"errors"
	"sync"
)

// Future is the outcome of a function that runs on a scheduler's slot in a
// goroutine of its own. All methods are safe for concurrent use.
type Future[T any] struct {
	task  task // the context of the function; also the waiters' meeting point
	value T
	fn    func(context.Context) (T, error)
}

// The status of a future settles by one compare-and-swap from pending, which
// fails if somebody has announced that the extra matters.
const (
	futurePending = 0
	futureSettled = 1 << 0 // with a value, or
	futureFailed  = 1 << 1 // with the error in extra
	futureWatched = 1 << 2 // the extra has teardowns, or somebody waits there
)

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
	f := &Future[T]{task: task{parent: ctx, c: s.c.made()}, fn: fn}
	if err := s.c.submit(ctx, s, arrival{job: f}); err != nil {
		f.refuse(err)
	}
	return f
}

// Wait returns the outcome when there is one. If ctx ends first, it returns
// the context's cause; the function goes on. A function that waits with its
// own context lends its slot; see [Scheduler].
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	if f.settled() {
		return f.outcome()
	}
	lender := f.task.c.lend(ctx)
	defer f.task.c.reclaim(lender)
	select {
	case <-f.Done():
		return f.outcome()
	case <-ctx.Done():
		if f.settled() {
			return f.outcome()
		}
		var none T
		return none, context.Cause(ctx)
	}
}

// Done is closed when the future has an outcome.
func (f *Future[T]) Done() <-chan struct{} {
	x := f.task.ensure()
	if f.watch() {
		x.wake()
	}
	return x.done
}

// watch has settle look at the extra, and reports whether the future has
// settled before.
func (f *Future[T]) watch() (late bool) {
	return f.task.status.Or(futureWatched)&(futureSettled|futureFailed) != 0
}

// Cancel ends the function's context with a cause, nil meaning
// context.Canceled. A function that is still queued is not called, and the
// future's error is the cause. One that runs may still return a value. A
// settled future stays as it is.
func (f *Future[T]) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	switch x := f.task.extra.Load(); {
	case f.settled():
	case x != nil && x.source != nil:
		f.cancelChain(x, cause)
	case !f.withdraw(cause):
		f.task.cancel(cause)
	}
}

// withdraw takes a queued function out and reports whether it was queued.
func (f *Future[T]) withdraw(cause error) bool {
	c := f.task.c
	c.lockAll()
	e := f.queued()
	if e == nil {
		c.unlock()
		return false
	}
	c.refuse(e, cause)
	c.dispatchAndUnlock(0, false)
	return true
}

// queued returns the future's entry if it is queued. The lock is held.
func (f *Future[T]) queued() *entry {
	if x := f.task.extra.Load(); x != nil && x.source != nil && !x.begun.Load() {
		return nil // and begin may be about to say which entry it is
	}
	// An entry is used again: it may be another job's by now. Only while it is
	// queued does the lock guard what is in it.
	if e := f.task.e; e != nil && e.Queued() && e.Value.job == job(f) {
		return e
	}
	return nil
}

// Teardown has fn called exactly once when the future has an outcome, also if
// its function never runs; at once if it has one already. Teardowns are called
// in the reverse order of their registration, before Wait returns, in the
// goroutine that settles the future; they must not block. If one panics or
// calls runtime.Goexit, the others are called all the same, and the future
// fails as if its function had done so.
func (f *Future[T]) Teardown(fn func()) {
	x := f.task.ensure()
	if f.watch() || !x.teardowns.add(fn) {
		fn()
	}
}

// follow has fn called when the outcome can be seen. fn is this package's.
func (f *Future[T]) follow(fn func()) {
	x := f.task.ensure()
	if f.watch() || !x.followers.add(fn) {
		fn()
	}
}

func (f *Future[T]) settled() bool {
	return f.task.status.Load()&(futureSettled|futureFailed) != 0
}

func (f *Future[T]) outcome() (T, error) {
	if f.task.status.Load()&futureFailed != 0 {
		return f.value, f.task.extra.Load().err
	}
	return f.value, nil
}

func (f *Future[T]) place(e *entry) { f.task.e = e }

// run calls the function, unless its context has ended since it was given a
// slot. It is the scheduler's.
func (f *Future[T]) run(w *worker, e *entry) {
	w.hold, w.task = &f.task.hold, &f.task
	if f.task.c.slots != nil {
		f.task.c.bindGrant(e, &f.task)
	}
	var err error
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		if err != nil {
			f.task.ensure().err = err
		}
		if !returned {
			f.task.c.report(err)
		}
	}()
	if err = f.task.ending(); err == nil {
		f.value, err = f.fn(&f.task)
	}
	returned = true
}

// settle runs the teardowns, publishes the outcome and wakes those who wait.
func (f *Future[T]) settle() {
	f.fn = nil
	x := f.task.extra.Load()
	if x == nil {
		if f.task.status.CompareAndSwap(futurePending, futureSettled) {
			return
		}
		x = f.task.extra.Load()
	}
	// All are deferred, so that a teardown which ends the goroutine ends nothing
	// else: the last registered one is called first, and publish last.
	defer f.publish(x)
	for _, fn := range x.teardowns.take() {
		defer f.task.c.guarded(fn, &x.err)
	}
}

func (f *Future[T]) publish(x *extra) {
	if x.err != nil {
		f.task.status.Or(futureFailed)
	} else {
		f.task.status.Or(futureSettled)
	}
	x.wake()
	for _, fn := range x.followers.take() {
		fn()
	}
}

func (f *Future[T]) refuse(err error) {
	f.task.state.Store(taskEnded)
	f.task.ensure().err = err
	f.task.stop()
	f.settle()
}

// hooks are functions to be called once, by whoever takes them.
type hooks struct {
	mu    sync.Mutex
	fns   []func()
	taken bool
}

// add registers fn, or reports that it is too late.
func (h *hooks) add(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return false
	}
	h.fns = append(h.fns, fn)
	return true
}

func (h *hooks) take() []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	fns := h.fns
	h.fns, h.taken = nil, true
	return fns
}

// guarded calls fn and adds to err what it panics with.
func (c *core) guarded(fn func(), err *error) {
	returned := false
	defer func() {
		if !returned {
			failure := caught(recover())
			*err = errors.Join(*err, failure)
			c.report(failure)
		}
	}()
	fn()
	returned = true
}
