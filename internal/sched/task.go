package sched

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Task is the context that a running function receives. It has the values of its parent,
// and knows the slot that the function runs on, so that work that the function waits for
// can run on that slot.
//
// It is one allocation. What few functions use is made on demand: a Done channel of its
// own, which is closed by a forced close, a lost slot or a cancellation.
type Task struct {
	parent context.Context //nolint:containedctx // a task is a context
	Hold
	future atomic.Pointer[futureState]
}

// futureState is what a task, or the call that it belongs to, seldom needs.
type futureState struct {
	own atomic.Pointer[ownContext] // made on demand

	done      chan struct{}        // closed when the call settles
	once      sync.Once            // closes it
	err       error                // of the call; written before it settles
	engine    *Engine              // of a call that continues another, else nil; set before it is shared
	before    atomic.Pointer[Call] // the call that this one continues, until that has settled; else nil
	moved     bool                 // to another tier while it waited; guarded by the engine's lock
	arrived   int64                // when a call that has been moved was submitted; guarded by the engine's lock
	teardowns hooks[func()]        // called before the call settles
	followers hooks[Follower]      // called after it has settled
}

// ownContext ends with the context of the task's parent, or by cancel.
type ownContext struct {
	context.Context //nolint:containedctx // the task's own

	cancel context.CancelCauseFunc
}

func (x *futureState) wake() { x.once.Do(func() { close(x.done) }) }

// ensure returns the task's future state, which it makes if there is none.
func (t *Task) ensure() *futureState {
	if x := t.future.Load(); x != nil {
		return x
	}
	x := &futureState{done: make(chan struct{})}
	if !t.future.CompareAndSwap(nil, x) {
		return t.future.Load()
	}
	return x
}

// own returns the task's own context, or nil if it has not been made.
func (t *Task) own() *ownContext {
	if x := t.future.Load(); x != nil {
		return x.own.Load()
	}
	return nil
}

// ensureOwn returns the task's own context, which it makes if there is none.
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
	if err := t.engine().live.add(t); err != nil {
		own.cancel(err)
	}
	return own
}

// cancel ends the context that the function has received.
func (t *Task) cancel(cause error) { t.ensureOwn().cancel(cause) }

// stop ends the task's own context, if it has one.
func (t *Task) stop() {
	own := t.own()
	if own == nil {
		return
	}
	t.engine().live.remove(t)
	own.cancel(context.Canceled)
}

// Deadline returns the deadline of the parent.
func (t *Task) Deadline() (time.Time, bool) { return t.parent.Deadline() }

// Done returns a channel that is closed when the function should stop.
func (t *Task) Done() <-chan struct{} {
	return t.ensureOwn().Done()
}

// Err returns why the function should stop, or nil.
func (t *Task) Err() error {
	if own := t.own(); own != nil {
		return own.Err()
	}
	if t.engine().killed.Load() || t.state.Load() == taskEnded {
		return t.ensureOwn().Err()
	}
	return t.parent.Err()
}

// ending returns the cause if the context has ended. It also considers the parent, whose end
// may not have reached the task's own context yet.
func (t *Task) ending() error {
	if t.engine().killed.Load() {
		t.ensureOwn()
	}
	return t.cancelled()
}

// cancelled returns the cause if the task was cancelled or the context of its parent has
// ended. The close of the engine alone does not count.
func (t *Task) cancelled() error {
	if own := t.own(); own != nil && own.Err() != nil {
		return context.Cause(own)
	}
	if t.parent.Err() != nil {
		return context.Cause(t.parent)
	}
	return nil
}

// Value returns the task for holdKey, and the parent's value for any other key.
func (t *Task) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		return t
	}
	if own := t.own(); own != nil {
		return own.Value(key) // so that context.Cause finds the cause
	}
	return t.parent.Value(key)
}

// engine returns the engine of the slot. The entry of a task stays the same while its
// function runs, and from the moment it is shared; but the entry of a continuation is set
// late.
func (t *Task) engine() *Engine {
	if x := t.future.Load(); x != nil && x.engine != nil {
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

// callerOn returns the hold on slots of e of f or of one of its callers, nil if there is
// none or if a function in between has ended.
func callerOn(e *Engine, f holder) *Hold {
	for ; f != nil && f.hold().state.Load() != taskEnded; f = f.outer() {
		if f.engine() == e {
			return f.hold()
		}
	}
	return nil
}

// Enter gets slots for a function that the caller runs itself, and the context to run it
// with. parent is the hold of the caller whose slots are suspended meanwhile, or nil; Exit
// resumes it.
func (e *Engine) Enter(ctx context.Context, a Ask) (t *Task, parent *Hold, err error) {
	if ctx.Err() != nil {
		return nil, parent, context.Cause(ctx)
	}
	x := &e.plain
	caller := innermost(ctx)
	switch {
	case caller != nil:
		x, parent, err = e.takeWithin(ctx, a, caller)
	case !a.plain() || !e.gate.take(int(a.Tier)):
		x, err = e.takeSlow(ctx, a)
	}
	if err != nil {
		return nil, nil, err
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

// takeWithin is the part of Enter for a call within a function that runs on slots, of e or of
// another engine.
func (e *Engine) takeWithin(ctx context.Context, a Ask, caller holder) (x *entry, parent *Hold, err error) {
	if h := callerOn(e, caller); h != nil {
		return e.takeNested(ctx, a, h, caller)
	}
	if a.plain() && e.gate.take(int(a.Tier)) {
		return &e.plain, nil, nil
	}
	x, err = e.takeSlow(ctx, a)
	return x, nil, err
}

// takeSlow is the part of Enter for a call that the gate does not admit without the lock.
func (e *Engine) takeSlow(ctx context.Context, a Ask) (*entry, error) {
	x := e.entries.waiter(a)
	if err := x.take(ctx); err != nil {
		return nil, err
	}
	if e.needsEntry(a) {
		return x, nil
	}
	x.recycle()
	return &e.plain, nil
}

// Exit releases the slots: to parent if its slots were suspended, else to what is next.
func (t *Task) Exit(parent *Hold) {
	if parent == nil {
		t.leave()
		return
	}
	e := t.engine()
	e.lock()
	var back *entry // before end: all that waits for a shared slot is reported before it is released
	if parent.lastToReturn() {
		back = parent.wantBack()
	}
	freed := t.end()
	t.x.recycle()
	if back != nil {
		parent.await(back, freed)
	} else {
		e.dispatchAndUnlock(freed, freed > 0)
	}
	t.stop()
}

// leave releases the slot of a task that ran in its caller's goroutine.
func (t *Task) leave() {
	x := t.x
	e := x.e // t.engine is for continuations, whose entry is set late
	if x == &e.plain && t.state.CompareAndSwap(taskHolding, taskEnded) {
		if e.gate.release() || e.deferRelease() {
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
