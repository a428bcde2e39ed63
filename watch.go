package stint

import "context"

// watch takes the queued jobs of one context out of the queue when it ends.
// One registration with the context serves all of them, and the watch of the
// context that was used last is kept, so that a program that submits many jobs
// under one context registers once.
type watch struct {
	ctx  context.Context
	done <-chan struct{}
	stop func() bool

	// Guarded by the core's lock.
	jobs    *entry // the newest of a doubly linked list
	kept    bool   // it is the core's present one
	stopped bool
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
	c.mu.Lock()
	if old := c.watched.Swap(w); old != nil {
		old.kept = false
		old.stopIfIdle()
	}
	c.mu.Unlock()
	return w, nil
}

// arm registers w with its context.
func (c *core) arm(w *watch) {
	stop := context.AfterFunc(w.ctx, func() { c.expel(w) })
	c.mu.Lock()
	defer c.mu.Unlock()
	w.stop = stop
	if w.stopped {
		stop()
	}
}

func (w *watch) stopIfIdle() {
	if w.jobs == nil && !w.kept && !w.stopped {
		w.stopped = true
		w.stop()
	}
}

// watch has w take e, which is queued, out of the queue when its context ends.
func (c *core) watch(w *watch, e *entry) {
	if w == nil {
		return
	}
	if w.stopped {
		// Between watchFor and now, the context ended or another took its place.
		w.stopped = false
		go c.arm(w) // not here: it calls the context
	}
	e.Value.watch, e.Value.link = w, w.jobs
	if w.jobs != nil {
		w.jobs.Value.newer = e
	}
	w.jobs = e
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
	w.stopIfIdle()
}

// expel answers the queued jobs of a context that has ended with its cause.
func (c *core) expel(w *watch) {
	cause := context.Cause(w.ctx)
	c.lock()
	w.kept, w.stopped = false, true
	c.watched.CompareAndSwap(w, nil)
	for w.jobs != nil {
		c.refuse(w.jobs, cause)
	}
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)
}
