package sched

import (
	"context"
	"sync"
	"sync/atomic"
)

// Group is a set of functions that run on slots and end together: the first error, or panic,
// cancels the context of the others, and Wait returns when all have ended.
type Group struct {
	e      *Engine
	ask    Ask
	own    Task            // its context ends with the parent's, or when the engine is closed by force
	ctx    context.Context //nolint:containedctx // the context of own, for as long as the group lives
	cancel context.CancelCauseFunc
	stop   func() bool
	waited atomic.Bool
	once   sync.Once
	done   chan struct{}

	mu  sync.Mutex
	err error // the first

	cancellation cancellation
	begun        int64 // functions passed to Go; guarded by the engine's lock
	_            pad
	ended        atomic.Int64
	_            pad
}

// Init initializes g.
func (g *Group) Init(ctx context.Context, e *Engine, a Ask) {
	g.e, g.ask, g.done = e, a, make(chan struct{})
	g.own.parent = ctx //nolint:fatcontext // a group is made with it
	g.own.x = &e.plain
	own := g.own.ensureOwn()
	g.ctx, g.cancel = own.Context, own.cancel
	g.cancellation.ctx, g.cancellation.group, g.cancellation.kept = g.ctx, g, true
	g.stop = context.AfterFunc(own.Context, g.expel) //nolint:contextcheck // the group's own
}

// Made reports whether g has been initialized.
func (g *Group) Made() bool { return g.done != nil }

// groupFunc is a function of a group, as a job.
type groupFunc func(context.Context) error

// Do calls the function.
func (f groupFunc) Do(ctx context.Context) error { return f(ctx) }

// Forget does nothing: the item and its function go together.
func (f groupFunc) Forget() {}

func (f groupFunc) run(w *worker) { w.job.group.run(w) }

func (f groupFunc) call() *Call { return nil }

// Go submits a function. It panics if Wait has returned.
func (g *Group) Go(fn func(context.Context) error) {
	if g.over("Go") {
		g.Fail(context.Cause(g.ctx))
		return
	}
	if err := g.submit(fn); err != nil {
		g.refuse(err)
	} else if g.ctx.Err() != nil {
		g.expel() // it may have ended before the function was queued
	}
}

// TryGo starts a function if it can start at once. It panics if Wait has returned.
func (g *Group) TryGo(fn func(context.Context) error) bool {
	if g.over("TryGo") {
		return false
	}
	e := g.e
	e.lock()
	g.begun++
	if tried := (&arrival{e: e, Ask: g.ask, job: groupFunc(fn), group: g}); tried.try() {
		return true
	}
	g.begun--
	e.unlock()
	return false
}

// over reports whether the group's context has ended. If Wait has returned, it panics
// with the method's name.
func (g *Group) over(method string) bool {
	if g.ctx.Err() == nil {
		return false
	}
	select {
	case <-g.done:
		panic("stint: Group." + method + " after Wait")
	default:
		return true
	}
}

// submit submits a function. Behind others like it, the function only needs to be queued.
func (g *Group) submit(fn groupFunc) error {
	e := g.e
	e.lock()
	g.begun++
	if !e.follows(g.ask) {
		arrives := arrival{e: e, Ask: g.ask, job: fn, group: g, cancellation: &g.cancellation}
		return arrives.submitAndUnlock(g.ctx)
	}
	tier := int(g.ask.Tier)
	at := e.queue.runs[tier].put(item{fn, &g.cancellation, e.queue.arrives(tier)}, &e.queue.spare)
	g.cancellation.addItem(tier, at)
	e.unlock()
	return nil
}

// Wait waits until all functions have ended and returns the first error.
func (g *Group) Wait() error {
	g.waited.Store(true)
	g.end(0)
	select {
	case <-g.done:
	default:
		suspended := Suspend(g.ctx)
		<-g.done
		suspended.Resume()
	}
	g.stop()
	g.own.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Fail makes err the group's error if it is the first, and cancels the other functions.
func (g *Group) Fail(err error) {
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

// run calls a function of the group, unless the group's context has ended since the
// function got a slot.
func (g *Group) run(w *worker) {
	returned := false
	defer func() {
		if !returned {
			err := g.e.cfg.Caught(recover())
			defer g.Fail(err)
			g.e.cfg.Report(err)
		}
	}()
	ctx := w.groupContext(g)
	err := ctx.Err()
	if err == nil {
		err = w.job.Do(ctx)
	} else {
		err = context.Cause(ctx)
	}
	if err != nil {
		g.Fail(err)
	}
	returned = true
}

// expel refuses the waiting functions after the group's context has ended.
func (g *Group) expel() {
	e, cause := g.e, context.Cause(g.ctx)
	e.lock()
	g.cancellation.refuseAndUnlock(e, cause)
}

// end counts n functions that have ended.
func (g *Group) end(n int64) {
	g.ended.Add(n)
	if !g.waited.Load() {
		return
	}
	g.e.lock()
	over := g.ended.Load() == g.begun
	g.e.unlock()
	if over {
		g.finish()
	}
}

// finish lets Wait return: all functions that began have ended. No function begins any
// more, since Wait has been called and no function is left that could call Go.
func (g *Group) finish() { g.once.Do(func() { close(g.done) }) }

func (g *Group) refuse(err error) {
	g.Fail(err)
	g.end(1)
}
