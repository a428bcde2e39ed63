package stint

import (
	"context"
	"sync"
	"sync/atomic"
)

// Group is a set of functions that run on a scheduler's slots and end
// together: the first error, or panic, cancels the context of the others, and
// Wait returns when all have ended. Make one with [NewGroup]. All methods are
// safe for concurrent use.
type Group struct {
	s      Scheduler
	own    task            // whose context ends with the parent's, or when the scheduler is closed by force
	ctx    context.Context //nolint:containedctx // that one, for as long as the group lives
	cancel context.CancelCauseFunc
	waited atomic.Bool
	once   sync.Once
	done   chan struct{}

	mu  sync.Mutex
	err error // the first

	_     pad
	begun atomic.Int64 // functions given to Go
	_     pad
	ended atomic.Int64
	_     pad
}

// NewGroup returns a group whose functions get a context derived from ctx. Wait
// must be called, or the context's resources leak.
func NewGroup(ctx context.Context, s Scheduler) *Group {
	g := &Group{s: s, own: task{parent: ctx, c: s.c.made()}, done: make(chan struct{})}
	own := g.own.ensureOwn()
	g.ctx, g.cancel = own.Context, own.cancel
	return g
}

// made returns g, and panics if that was not made with [NewGroup].
func (g *Group) made() *Group {
	if g == nil || g.done == nil {
		panic("stint: zero Group: make one with NewGroup")
	}
	return g
}

// Scope calls fn with a new group and waits for everything that was started in
// it, also if fn panics. It returns fn's error, or the group's first.
func Scope(ctx context.Context, s Scheduler, fn func(*Group) error) error {
	g := NewGroup(ctx, s)
	returned := false
	defer func() {
		if !returned {
			g.Cancel(nil)
			_ = g.Wait() // the panic that goes on says more
		}
	}()
	if err := fn(g); err != nil {
		g.fail(err)
	}
	returned = true
	return g.Wait()
}

// Go queues fn, to be called with the group's context when a slot is free. It
// waits only if the queue is bounded, blocks and is full. Once the group has
// failed, functions that have not started are not called. Go panics after Wait
// has returned. A function of the group that calls Go keeps its slot while Go
// waits for room in the queue: give the queue room for what it adds.
func (g *Group) Go(fn func(context.Context) error) {
	g.made().begun.Add(1)
	err := g.s.c.submit(g.ctx, g.s, arrival{job: g, fn: fn})
	if err == nil {
		return
	}
	select {
	case <-g.done: // then the context has ended, and fn would be dropped without a word
		panic("stint: Group.Go after Wait")
	default:
		g.refuse(err)
	}
}

// Cancel ends the group's context with a cause, nil meaning context.Canceled.
// Functions that have not started are not called, and Wait returns the cause
// unless a function failed before.
func (g *Group) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	g.made().fail(cause)
}

// Wait waits until all functions have ended and returns the first error: of a
// function, or for which a function was not called. A panic is returned as a
// [*PanicError]. While it waits, it lends the slot of the function with whose
// context the group was made, if that runs on the same scheduler; see
// [Scheduler]. A group made there with another context lends nothing.
func (g *Group) Wait() error {
	g.made().waited.Store(true)
	if g.ended.Load() == g.begun.Load() {
		g.finish()
	}
	select {
	case <-g.done:
	default:
		lender := g.s.c.lend(g.ctx)
		<-g.done
		g.s.c.reclaim(lender)
	}
	g.own.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *Group) fail(err error) {
	g.mu.Lock()
	first := g.err == nil
	if first {
		g.err = err
	}
	g.mu.Unlock()
	if first {
		g.cancel(err)
	}
}

func (g *Group) place(*entry) {}

// run calls a function of the group, unless the group's context has ended since
// the function was given a slot. It is the scheduler's.
func (g *Group) run(w *worker, e *entry) {
	returned := false
	defer func() {
		if !returned {
			err := caught(recover())
			defer g.fail(err)
			g.s.c.report(err)
		}
	}()
	ctx := w.groupContext(g, e)
	err := ctx.Err()
	if err == nil {
		err = e.Value.fn(ctx)
	} else {
		err = context.Cause(ctx)
	}
	if err != nil {
		g.fail(err)
	}
	returned = true
}

func (g *Group) settle() {
	if ended := g.ended.Add(1); g.waited.Load() && ended == g.begun.Load() {
		g.finish()
	}
}

// finish lets Wait return: all that has begun has ended. Nothing begins any
// more, since Wait has been called and no function is left that could call Go.
func (g *Group) finish() { g.once.Do(func() { close(g.done) }) }

func (g *Group) refuse(err error) {
	g.fail(err)
	g.settle()
}
