package stint

import (
	"context"
	"sync/atomic"
	"weak"
)

// watch takes the queued jobs of one context out of the queue when it ends.
// One registration with the context serves all of them, and the watch of the
// context that was used last is kept, so that a program that submits many jobs
// under one context registers once.
type watch struct {
	ctx     context.Context //nolint:containedctx // the one it watches
	done    <-chan struct{}
	stopped atomic.Bool          // it watches no longer; set with the core's lock held
	core    atomic.Pointer[core] // whose jobs it has; nil while it has none, so that it keeps no idle scheduler
	_       pad

	// Guarded by the core's lock.
	stop func() bool
	jobs *entry // the newest of a doubly linked list
	kept bool   // it is the core's present one
}

// watchFor returns the watch of ctx, nil if ctx never ends, or the cause if it
// has ended. It is called without the lock, because it calls the context.
func (c *core) watchFor(ctx context.Context) (*watch, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	done := ctx.Done()
	if done == nil {
		return nil, nil
	}
	if w := c.watched.Load(); w != nil && w.done == done {
		return w, nil
	}
	w := &watch{ctx: ctx, done: done, kept: true}
	c.arm(w)
	c.lock()
	if old := c.watched.Swap(w); old != nil {
		old.kept = false
		c.stopIfIdle(old)
	}
	c.unlock()
	return w, nil
}

// arm registers w with its context, in place of what it may have registered
// before: two goroutines arm a watch that is stopped and used again twice before
// the first of them has come to it.
func (c *core) arm(w *watch) {
	core := weak.Make(c) // a context that lives on keeps no idle scheduler
	stop := context.AfterFunc(w.ctx, func() {
		if c := core.Value(); c != nil {
			c.expel(w)
		}
	})
	c.lock()
	earlier := w.stop
	w.stop = stop
	stopped := w.stopped.Load()
	c.unlock()
	if earlier != nil {
		earlier()
	}
	if stopped {
		stop()
	}
}

// stopIfIdle ends a watch that is not kept and has nothing in the queue. Jobs
// of it may be in the inbox: whoever posts one looks at stopped afterwards, and
// for those that did so too early the inbox is emptied, which arms the watch
// again.
func (c *core) stopIfIdle(w *watch) {
	if w.jobs != nil || w.kept || !w.stopped.CompareAndSwap(false, true) {
		return
	}
	go w.stop() // not here: it may call the context
	if c.word.Load()&postedMask != 0 {
		go c.refresh()
	}
}

// watch has w take e, which is queued, out of the queue when its context ends.
func (c *core) watch(w *watch, e *entry) {
	if w == nil {
		return
	}
	if w.stopped.Load() && w.stopped.CompareAndSwap(true, false) {
		// Between watchFor and now, the context ended or another took its place.
		go c.arm(w) // not here: it calls the context
	}
	e.Value.watch, e.Value.link = w, w.jobs
	if w.jobs != nil {
		w.jobs.Value.newer = e
	}
	w.jobs = e
}

// keep notes that jobs of the watch are posted in c's inbox. It is called after
// the word says so.
func (w *watch) keep(c *core) {
	if w != nil && w.core.Load() != c {
		w.core.Store(c)
	}
}

// unwatch is called when e leaves the queue.
func (c *core) unwatch(e *entry) {
	v := &e.Value
	w := v.watch
	if w == nil {
		return
	}
	if v.newer != nil {
		v.newer.Value.link = v.link
	} else {
		w.jobs = v.link
	}
	if v.link != nil {
		v.link.Value.newer = v.newer
	}
	v.watch, v.link, v.newer = nil, nil, nil
	if w.jobs == nil && w.core.Load() != nil {
		w.core.Store(nil)
		if c.posted() != 0 {
			w.core.Store(c)
		}
	}
	c.stopIfIdle(w)
}

// expel answers the queued jobs of a context that has ended with its cause.
func (c *core) expel(w *watch) {
	cause := context.Cause(w.ctx)
	c.lockAll()
	w.kept = false
	w.stopped.Store(true)
	c.watched.CompareAndSwap(w, nil)
	for w.jobs != nil {
		c.refuse(w.jobs, cause)
	}
	c.dispatchAndUnlock(0, false)
}
