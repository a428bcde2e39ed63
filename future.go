package stint

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Future is the outcome of a function that runs on a scheduler's slot in a
// goroutine of its own. All methods are safe for concurrent use.
type Future[T any] struct {
	task  task // the context of the function; also the waiters' meeting point
	value T
	fn    func(context.Context) (T, error)
}

const (
	futurePending = iota
	futureSettled // with a value
	futureFailed  // with the error in extra
)

// Go queues fn and returns at once; fn is called when a slot is free. In a
// bounded queue that blocks, Go waits for room.
//
// fn's context ends when ctx does, when the future is cancelled, or when the
// scheduler is closed by force. If ctx ends before fn has been called, fn is
// not called. If fn panics, the future's error is a [*PanicError]; if it calls
// runtime.Goexit, [ErrGoexit]; and if it was not called, an error that
// [Scheduler.Acquire] describes.
func Go[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) *Future[T] {
	f := &Future[T]{task: task{parent: ctx, c: s.c}, fn: fn}
	if err := s.c.submit(ctx, s, arrival{job: f, task: &f.task}); err != nil {
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
	f.catchUp(x)
	return x.done
}

// Cancel ends the function's context with a cause, nil meaning
// context.Canceled. A function that is still queued is not called, and the
// future's error is the cause. One that runs may still return a value. A
// settled future stays as it is.
func (f *Future[T]) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	if f.settled() || f.withdraw(cause) {
		return
	}
	x := f.task.ensure()
	x.cancel(cause)
	if x.source != nil {
		x.source(cause)
	}
}

// withdraw takes a queued function out and reports whether it was queued.
func (f *Future[T]) withdraw(cause error) bool {
	c := f.task.c
	c.mu.Lock()
	// An entry is used again: it may be another job's by now.
	if e := f.task.e; e == nil || e.Value.job != job(f) || !e.Queued() {
		c.mu.Unlock()
		return false
	}
	c.refuse(f.task.e, cause)
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)
	return true
}

// Teardown has fn called exactly once when the future has an outcome, also if
// its function never runs; at once if it has one already. Teardowns are called
// in the reverse order of their registration, before Wait returns, in the
// goroutine that settles the future; they must not block. If one panics, the
// others are called all the same, and the future fails with a [*PanicError].
func (f *Future[T]) Teardown(fn func()) {
	x := f.task.ensure()
	if !x.teardowns.add(fn) {
		fn()
		return
	}
	f.catchUp(x)
}

// catchUp finishes an extra that was made when the future settled, too late to
// be seen there.
func (f *Future[T]) catchUp(x *extra) {
	if f.settled() {
		_ = x.teardowns.run()
		x.wake()
	}
}

func (f *Future[T]) settled() bool { return f.task.status.Load() != futurePending }

func (f *Future[T]) outcome() (T, error) {
	if f.task.status.Load() == futureFailed {
		return f.value, f.task.extra.Load().err
	}
	return f.value, nil
}

// run calls the function. It is the scheduler's.
func (f *Future[T]) run(w *worker, e *entry) {
	w.current = &f.task
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
	}()
	f.value, err = f.fn(&f.task)
	returned = true
}

// settle runs the teardowns, publishes the outcome and wakes those who wait.
func (f *Future[T]) settle() {
	f.fn = nil
	x := f.task.extra.Load()
	if x == nil {
		f.task.status.Store(futureSettled)
		if x = f.task.extra.Load(); x != nil {
			f.catchUp(x)
		}
		return
	}
	if err := x.teardowns.run(); err != nil {
		x.err = errors.Join(x.err, err)
	}
	if x.err != nil {
		f.task.status.Store(futureFailed)
	} else {
		f.task.status.Store(futureSettled)
	}
	x.wake()
}

func (f *Future[T]) refuse(err error) {
	f.task.state.Store(taskEnded)
	f.task.ensure().err = err
	f.task.stop()
	f.settle()
}

// teardowns are functions to be called once, by whoever calls run first.
type teardowns struct {
	mu     sync.Mutex
	fns    []func()
	called bool
}

// add registers fn, or reports that it is too late.
func (t *teardowns) add(fn func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.called {
		return false
	}
	t.fns = append(t.fns, fn)
	return true
}

// run calls the functions, the last registered one first, and returns what
// those that panicked panicked with.
func (t *teardowns) run() (err error) {
	t.mu.Lock()
	fns := t.fns
	t.fns, t.called = nil, true
	t.mu.Unlock()
	for _, fn := range slices.Backward(fns) {
		err = errors.Join(err, guarded(fn))
	}
	return err
}

func guarded(fn func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	fn()
	return nil
}
