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
	own    Task            // whose context ends with the parent's, or when the engine is closed by force
	ctx    context.Context //nolint:containedctx // that one, for as long as the group lives
	cancel context.CancelCauseFunc
	stop   func() bool
	watch  *watch // takes its jobs that are entries out of the queue; nil if they are items alone
	waited atomic.Bool
	once   sync.Once
	done   chan struct{}

	mu  sync.Mutex
	err error // the first

	_     pad
	begun atomic.Int64 // functions given to Go
	// Guarded by the engine's lock: of the functions that are items alone, the place of the
	// first and of the last that were queued.
	first, last uint64
	some        bool // there are such
	_           pad
	ended       atomic.Int64
	_           pad
}

// Init makes g a group.
func (g *Group) Init(ctx context.Context, e *Engine, a Ask) {
	g.e, g.ask, g.done = e, a, make(chan struct{})
	g.own.parent = ctx //nolint:fatcontext // a group is made with it
	g.own.x = &e.plain
	own := g.own.ensureOwn()
	g.ctx, g.cancel = own.Context, own.cancel
	if e.needsEntry(a) {
		g.watch = &watch{ctx: g.ctx, kept: true}
	}
	g.stop = context.AfterFunc(own.Context, g.expel) //nolint:contextcheck // the group's own
}

// Made reports whether g is a group.
func (g *Group) Made() bool { return g.done != nil }

// Do is not called: a group has many functions, each in an item.
func (g *Group) Do(context.Context) error { return nil }

// Forget has nothing to do: an item goes with its function.
func (g *Group) Forget() {}

func (g *Group) call() *Call { return nil }

// Go submits a function. It panics if Wait has returned.
func (g *Group) Go(fn func(context.Context) error) {
	g.begun.Add(1)
	err := g.ctx.Err()
	if err != nil {
		err = context.Cause(g.ctx)
	} else {
		err = g.e.submit(g.ctx, arrival{Ask: g.ask, job: g, fn: fn, watch: g.watch})
	}
	if err == nil {
		if g.ctx.Err() != nil {
			g.expel() // it may have ended before the function was queued
		}
		return
	}
	select {
	case <-g.done:
		panic("stint: Group.Go after Wait")
	default:
		g.refuse(err)
	}
}

// Wait waits until all functions have ended and returns the first error.
func (g *Group) Wait() error {
	g.waited.Store(true)
	if g.ended.Load() == g.begun.Load() {
		g.finish()
	}
	select {
	case <-g.done:
	default:
		lent := Lend(g.ctx)
		<-g.done
		lent.Reclaim()
	}
	g.stop()
	g.own.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Fail makes err the group's error, if it is the first, and cancels the others.
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

// run calls a function of the group, unless the group's context has ended since
// the function was given a slot.
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
		err = w.job.fn(ctx)
	} else {
		err = context.Cause(ctx)
	}
	if err != nil {
		g.Fail(err)
	}
	returned = true
}

// queued notes the place of an item of the group. The engine's lock is held.
func (g *Group) queued(place uint64) {
	if !g.some {
		g.first, g.some = place, true
	}
	g.last = place
}

// expel refuses the functions that wait when the group's context has ended.
func (g *Group) expel() {
	e, tier, cause := g.e, int(g.ask.Tier), context.Cause(g.ctx)
	e.lock()
	var all []piece
	if g.watch != nil {
		all = g.watch.pieces(&e.queue)
	}
	r := &e.queue.runs[tier]
	for place, ok := r.next(g.first); ok && g.some && place <= g.last; place, ok = r.next(place + 1) {
		if p := r.piece(tier, place); p.it.job == Job(g) {
			all = append(all, p)
		}
	}
	e.refuseThese(all, cause)
	e.dispatchAndUnlock(0, false)
}

// end counts functions that have ended.
func (g *Group) end(n int64) {
	if ended := g.ended.Add(n); g.waited.Load() && ended == g.begun.Load() {
		g.finish()
	}
}

// finish lets Wait return: all that has begun has ended. Nothing begins any
// more, since Wait has been called and no function is left that could call Go.
func (g *Group) finish() { g.once.Do(func() { close(g.done) }) }

func (g *Group) refuse(err error) {
	g.Fail(err)
	g.end(1)
}
