package stint

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// task is the context that a running function is given. It carries what its
// parent does, and it knows the slot that the function runs on, so that work
// that the function waits for can run on that slot.
//
// It is one allocation. What few functions use, a Done channel of its own that
// a forced close, a lost slot or Future.Cancel closes, is made when asked for.
type task struct {
	parent context.Context //nolint:containedctx // a task is a context
	c      *core
	hold
	extra atomic.Pointer[extra]
}

// hold is a running function's hold on its slots.
type hold struct {
	e *entry // that has the slots; written with the core's lock held once others can see it

	// state is taskHolding, or the number of goroutines that wait within the
	// function for work of the same scheduler, which have lent its slots, or
	// taskEnded. It changes with the core's lock held, but for the step from
	// taskHolding to taskEnded.
	state  atomic.Int32
	status atomic.Uint32 // of the future that the task is part of
}

const (
	taskEnded   = -1
	taskHolding = 0
)

// extra is what a task, or the future that it is part of, seldom needs.
type extra struct {
	own atomic.Pointer[ownContext] // nil until somebody asks for it

	done      chan struct{} // closed when the future settles
	once      sync.Once     // closes it
	err       error         // the future's; written before it settles
	source    func(error)   // cancels the future that this one continues; set before it is shared
	begun     atomic.Bool   // such a one has been submitted
	teardowns hooks         // are called before the future settles,
	followers hooks         // and these after
}

// ownContext ends with the context of the task's parent, or by cancel.
type ownContext struct {
	context.Context //nolint:containedctx // the task's own

	cancel context.CancelCauseFunc
}

func (x *extra) wake() { x.once.Do(func() { close(x.done) }) }

// ensure returns the task's extra, made if need be.
func (t *task) ensure() *extra {
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
func (t *task) own() *ownContext {
	if x := t.extra.Load(); x != nil {
		return x.own.Load()
	}
	return nil
}

// ensureOwn returns the task's own context, made if need be.
func (t *task) ensureOwn() *ownContext {
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
	t.c.lock()
	killed, ended := t.c.killed.Load(), t.state.Load() == taskEnded
	if !killed && !ended {
		t.c.live[t] = struct{}{}
	}
	t.c.unlock()
	if killed {
		own.cancel(ErrClosed)
	} else if ended {
		own.cancel(context.Canceled)
	}
	return own
}

// cancel ends the context that the function was given.
func (t *task) cancel(cause error) { t.ensureOwn().cancel(cause) }

// stop ends the task's own context, if it has one.
func (t *task) stop() {
	own := t.own()
	if own == nil {
		return
	}
	t.c.lock()
	delete(t.c.live, t)
	t.c.unlock()
	own.cancel(context.Canceled)
}

// Deadline is the parent's.
func (t *task) Deadline() (time.Time, bool) { return t.parent.Deadline() }

// Done is closed when the function should stop.
func (t *task) Done() <-chan struct{} {
	return t.ensureOwn().Done()
}

// Err says why the function should stop, if it should.
func (t *task) Err() error {
	if own := t.own(); own != nil {
		return own.Err()
	}
	if t.c.killed.Load() || t.state.Load() == taskEnded {
		return t.ensureOwn().Err()
	}
	return t.parent.Err()
}

// ending returns the cause if the context has ended, also if that of the parent
// has and the task's own one is about to.
func (t *task) ending() error {
	switch {
	case t.Err() != nil:
		return context.Cause(t)
	case t.parent.Err() != nil:
		return context.Cause(t.parent)
	default:
		return nil
	}
}

// Value answers a scheduler's core with the hold on its slots, and anything
// else as the parent does.
func (t *task) Value(key any) any {
	if c, ok := key.(*core); ok && c == t.c {
		return &t.hold
	}
	if own := t.own(); own != nil {
		return own.Value(key) // so that context.Cause finds the cause
	}
	return t.parent.Value(key)
}

// leave gives back the slot of a task that ran in its caller's goroutine.
func (t *task) leave() {
	c, e := t.c, t.e
	if e != &c.basic || !t.state.CompareAndSwap(taskHolding, taskEnded) {
		c.lock()
	} else if c.giveFast() || c.leaveReturn() {
		t.stop()
		return
	}
	if freed := c.end(&t.hold, e); freed > 0 {
		c.release(freed)
	} else {
		c.dispatch(0, false)
	}
	if e != &c.basic {
		c.recycle(e)
	}
	c.unlock()
	t.stop()
}

// end ends a hold on the slots of e, and returns how many that frees: none if
// they have been lent to work that still waits for them.
func (c *core) end(h *hold, e *entry) (freed int) {
	if h.state.Swap(taskEnded) > taskHolding {
		c.countLent(-1)
		return 0
	}
	c.yield(e)
	return int(e.Value.weight)
}

// endGroupJob is end for a group's job. That it has ended matters only with
// the lock held, so its entry tells, which is cheaper to write than its state.
func (c *core) endGroupJob(h *hold, e *entry) (freed int) {
	if h.state.Load() != taskHolding {
		return c.end(h, e)
	}
	h.e = &c.gone
	c.yield(e)
	return int(e.Value.weight)
}

// yield gives up what e holds besides its slots here.
func (c *core) yield(e *entry) {
	c.log.Finish(e.Value.keyName())
	if c.slots != nil {
		c.giveGrant(e)
	}
}
