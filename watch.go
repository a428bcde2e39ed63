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

// watchFor returns the watch of ctx, nil if ctx never ends. It is called
// without the lock, because it calls the context.
func (c *core) watchFor(ctx context.Context) *watch {
	done := ctx.Done()
	if done == nil {
		return nil
	}
	if w := c.watched.Load(); w != nil && w.done == done {
		return w
	}
	w := &watch{ctx: ctx, done: done, kept: true}
	w.stop = context.AfterFunc(ctx, func() { c.expel(w) })
	c.mu.Lock()
	if old := c.watched.Swap(w); old != nil {
		old.kept = false
		old.stopIfIdle()
	}
	c.mu.Unlock()
	return w
}

func (w *watch) stopIfIdle() {
	if w.jobs == nil && !w.kept && !w.stopped {
		w.stopped = true
		w.stop()
	}
}

// watch has w take e out of the queue if its context ends.
func (c *core) watch(w *watch, e *entry) {
	if w == nil || !e.Queued() {
		return
	}
	e.Value.watch, e.Value.older = w, w.jobs
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
		v.newer.Value.older = v.older
	} else {
		w.jobs = v.older
	}
	if v.older != nil {
		v.older.Value.newer = v.newer
	}
	v.watch, v.older, v.newer = nil, nil, nil
	w.stopIfIdle()
}

// expel answers the queued jobs of a context that has ended with its cause.
func (c *core) expel(w *watch) {
	cause := context.Cause(w.ctx)
	c.mu.Lock()
	w.kept, w.stopped = false, true
	c.watched.CompareAndSwap(w, nil)
	for w.jobs != nil {
		c.refuse(w.jobs, cause)
	}
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)
}
