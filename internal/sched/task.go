package sched

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Task is the context that a running function is given. It carries what its
// parent does, and it knows the slot that the function runs on, so that work
// that the function waits for can run on that slot.
//
// It is one allocation. What few functions use, a Done channel of its own that
// a forced close, a lost slot or a cancellation closes, is made when asked for.
type Task struct {
	parent context.Context //nolint:containedctx // a task is a context
	Hold
	extra atomic.Pointer[extra]
}

// extra is what a task, or the call that it is part of, seldom needs.
type extra struct {
	own atomic.Pointer[ownContext] // nil until it is asked for

	done      chan struct{} // closed when the call settles
	once      sync.Once     // closes it
	err       error         // the call's; written before it settles
	source    func(error)   // cancels the call that this one continues; set before it is shared, as is
	engine    *Engine       // of such a one
	begun     atomic.Bool   // such a one has been submitted
	moved     bool          // to another tier while it waited; guarded by the engine's lock, as is
	arrived   int64         // when it has been submitted, of such a one
	teardowns hooks         // are called before the call settles,
	followers hooks         // and these after
}

// ownContext ends with the context of the task's parent, or by cancel.
type ownContext struct {
	context.Context //nolint:containedctx // the task's own

	cancel context.CancelCauseFunc
}

func (x *extra) wake() { x.once.Do(func() { close(x.done) }) }

// ensure returns the task's extra, made if need be.
func (t *Task) ensure() *extra {
	if x := t.extra.Load(); x != nil {
		return x
	}
	x := &extra{done: make(chan struct{})}
	if !t.extra.CompareAndSwap(nil, x) {
		return t.extra.Load()
	}
	return x
}

// own returns the task's own context, or nil if it has not been asked for.
func (t *Task) own() *ownContext {
	if x := t.extra.Load(); x != nil {
		return x.own.Load()
	}
	return nil
}

// ensureOwn returns the task's own context, made if need be.
func (t *Task) ensureOwn() *ownContext {
	x := t.ensure()
	if own := x.own.Load(); own != nil {
		return own
	}
	own := new(ownContext)
	own.Context, own.cancel = context.WithCancelCause(t.parent)
	if !x.own.CompareAndSwap(nil, own) {
		own.cancel(nil)
		return x.own.Load()
	}
	e := t.engine()
	e.lock()
	killed, ended := e.killed.Load(), t.state.Load() == taskEnded
	if !killed && !ended {
		e.live[t] = struct{}{}
	}
	e.unlock()
	if killed {
		own.cancel(ErrClosed)
	} else if ended {
		own.cancel(context.Canceled)
	}
	return own
}

// cancel ends the context that the function was given.
func (t *Task) cancel(cause error) { t.ensureOwn().cancel(cause) }

// stop ends the task's own context, if it has one.
func (t *Task) stop() {
	own := t.own()
	if own == nil {
		return
	}
	e := t.engine()
	e.lock()
	delete(e.live, t)
	e.unlock()
	own.cancel(context.Canceled)
}

// Deadline is the parent's.
func (t *Task) Deadline() (time.Time, bool) { return t.parent.Deadline() }

// Done is closed when the function should stop.
func (t *Task) Done() <-chan struct{} {
	return t.ensureOwn().Done()
}

// Err says why the function should stop, if it should.
func (t *Task) Err() error {
	if own := t.own(); own != nil {
		return own.Err()
	}
	if t.engine().killed.Load() || t.state.Load() == taskEnded {
		return t.ensureOwn().Err()
	}
	return t.parent.Err()
}

// ending returns the cause if the context has ended, also if that of the parent
// has and the task's own one is about to.
func (t *Task) ending() error {
	switch {
	case t.Err() != nil:
		return context.Cause(t)
	case t.parent.Err() != nil:
		return context.Cause(t.parent)
	default:
		return nil
	}
}

// cancelled returns the cause if the task has been cancelled, or the context of its parent has
// ended, but not for the close of the engine alone.
func (t *Task) cancelled() error {
	if own := t.own(); own != nil && own.Err() != nil {
		return context.Cause(own)
	}
	if t.parent.Err() != nil {
		return context.Cause(t.parent)
	}
	return nil
}

// Value answers holdKey with the task, and anything else as the parent does.
func (t *Task) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		return t
	}
	if own := t.own(); own != nil {
		return own.Value(key) // so that context.Cause finds the cause
	}
	return t.parent.Value(key)
}

// engine is that of the slot. The entry of a task stays the same while its function runs, and
// from when it can be seen; but that of a continuation is set late.
func (t *Task) engine() *Engine {
	if x := t.extra.Load(); x != nil && x.engine != nil {
		return x.engine
	}
	return t.x.e
}

func (t *Task) hold() *Hold { return &t.Hold }

func (t *Task) outer() holder {
	if t.status.Load()&callNested == 0 {
		return nil
	}
	return innermost(t.parent)
}

// callerOn returns the hold on slots of e that f has, or a function that has called it, nil if
// there is none, or a function in between has ended.
func callerOn(e *Engine, f holder) *Hold {
	for ; f != nil && f.hold().state.Load() != taskEnded; f = f.outer() {
		if f.engine() == e {
			return f.hold()
		}
	}
	return nil
}

// Enter gets slots for a function that the caller runs itself, and the
// context to run it with. parent is what the caller runs on and has lent meanwhile: Exit
// gives it back.
func (e *Engine) Enter(ctx context.Context, a Ask) (t *Task, parent Suspended, err error) {
	if ctx.Err() != nil {
		return nil, parent, context.Cause(ctx)
	}
	x := &e.plain
	caller := innermost(ctx)
	if h := callerOn(e, caller); h != nil {
		x, parent, err = e.takeNested(ctx, a, h, caller)
	} else if !a.plain() || !e.gate.take(int(a.Tier)) {
		x = e.waiter(a)
		if err = x.take(ctx); err == nil && !e.needsEntry(a) {
			x.recycle()
			x = &e.plain
		}
	}
	if err != nil {
		return nil, Suspended{}, err
	}
	t = &Task{parent: ctx, Hold: Hold{x: x}}
	if caller != nil {
		t.status.Store(callNested)
	}
	if e.cfg.Slots != nil {
		e.shared.bind(x, t)
	}
	return t, parent, nil
}

// Exit gives the slots back: to parent if that has lent its own, else to what
// is next.
func (t *Task) Exit(parent Suspended) {
	e := t.engine()
	if parent.h == nil {
		t.leave()
		return
	}
	e.lock()
	freed := t.end()
	t.x.recycle()
	if parent.h.lastToReturn() {
		parent.h.resume(freed)
	} else {
		e.dispatchAndUnlock(freed, freed > 0)
	}
	t.stop()
}

// leave gives back the slot of a task that ran in its caller's goroutine.
func (t *Task) leave() {
	e, x := t.engine(), t.x
	if x == &e.plain && t.state.CompareAndSwap(taskHolding, taskEnded) {
		if e.gate.give() || e.combiner.deferRelease() {
			t.stop()
			return
		}
		e.release(1)
	} else {
		e.lock()
		if freed := t.end(); freed > 0 {
			e.release(freed)
		} else {
			e.dispatch(0, false)
		}
		x.recycle()
	}
	e.unlock()
	t.stop()
}
