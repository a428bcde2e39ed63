package sched

import (
	"context"
	"runtime"
	"sync/atomic"
	"weak"
)

// cancellation removes the queued jobs of one context from the queue when the context
// ends. One registration with the context serves all of them.
type cancellation struct {
	ctx   context.Context //nolint:containedctx // its end removes the jobs
	done  <-chan struct{}
	group *Group // if it serves only the functions of a group; nil if it serves all jobs of the context

	_ pad

	stopped atomic.Bool // the registration has ended; set with the engine's lock held

	// Guarded by the engine's lock.
	engine *Engine // set while it has jobs, which keeps an engine with jobs alive and no idle one
	stop   func() bool
	newest *entry        // of a doubly linked list of entries with a key
	oldest *entry        // the other end
	items  [Tiers]int    // how many items are queued, or were ever queued if it is a group's
	from   [Tiers]uint64 // no item is before this place; jobs to be refused are looked for from here
	last   [Tiers]uint64 // no item is behind this place
	n      int           // entries, and items that are not of a group
	kept   bool          // it is the engine's latest, or a group's
}

// cancellations has the cancellations of contexts. That of the context used last is kept,
// so that a program that submits many jobs under one context registers once.
type cancellations struct {
	e      *Engine                      // immutable
	latest atomic.Pointer[cancellation] // for the context used last; changes with the lock held
	waits  <-chan struct{}              // Done of the last waiting goroutine's context; guarded by the lock
	last   *registration                // guarded by the lock; nil before the first
}

// registration is the last one of an engine with a context. When the engine has been collected, it is
// ended, or the context would keep one of each engine that it was used with.
type registration struct{ stop func() bool }

// latestOf returns the latest cancellation, if its context has this Done channel, else nil.
func (l *cancellations) latestOf(done <-chan struct{}) *cancellation {
	if w := l.latest.Load(); w != nil && w.done == done {
		return w
	}
	return nil
}

// noteWait notes the Done channel of a goroutine that is about to wait, and reports whether
// the one before it had the same: then a cancellation would pay. The lock is held.
func (l *cancellations) noteWait(done <-chan struct{}) bool {
	same := l.waits == done
	l.waits = done
	return same
}

// of returns the cancellation for ctx, nil if ctx never ends, or the cause if it has
// ended. It is called without the lock, because it calls the context.
func (l *cancellations) of(ctx context.Context) (*cancellation, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	done := ctx.Done()
	if done == nil {
		return nil, nil
	}
	if w := l.latestOf(done); w != nil {
		return w, nil
	}
	w := &cancellation{ctx: ctx, done: done, kept: true}
	w.arm(l.e)
	l.e.lock()
	if old := l.latest.Swap(w); old != nil {
		old.kept = false
		old.stopIfIdle()
	}
	l.e.unlock()
	return w, nil
}

// arm registers w with its context and ends an earlier registration. There may be one:
// when w is stopped and reused twice in quick succession, two goroutines arm it.
func (w *cancellation) arm(e *Engine) {
	engine := weak.Make(e) // a context does not keep an idle engine alive
	stop := context.AfterFunc(w.ctx, func() {
		if e := engine.Value(); e != nil {
			w.end(e)
		}
	})
	e.lock()
	earlier := w.stop
	w.stop = stop
	if w.group == nil {
		e.cancellations.registered(stop)
	}
	stopped := w.stopped.Load()
	e.unlock()
	if earlier != nil {
		earlier()
	}
	if stopped {
		stop()
	}
}

// registered records the last registration. The lock is held.
func (l *cancellations) registered(stop func() bool) {
	if l.last == nil {
		l.last = new(registration)
		runtime.AddCleanup(l.e, func(r *registration) { r.stop() }, l.last)
	}
	l.last.stop = stop
}

// rearm precedes the addition of a job: since cancellations.of returned w, the context may have
// ended, or another context's cancellation may have become the latest.
func (w *cancellation) rearm(e *Engine) {
	if w == nil || w.n > 0 {
		return
	}
	w.engine = e
	if w.stopped.Load() && w.stopped.CompareAndSwap(true, false) {
		go w.arm(e) // not here: it calls the context
	}
}

// add adds a queued entry with a key.
func (w *cancellation) add(x *entry) {
	if w == nil {
		return
	}
	w.n++
	x.cancellation, x.older = w, w.newest
	if w.newest != nil {
		w.newest.newer = x
	} else {
		w.oldest = x
	}
	w.newest = x
}

// addItem adds an item.
func (w *cancellation) addItem(tier int, place uint64) {
	if w == nil {
		return
	}
	if w.items[tier] == 0 {
		w.from[tier] = place
	}
	w.items[tier]++
	w.last[tier] = place
	if w.group == nil {
		w.n++
	}
}

// remove removes an entry with a key that leaves the queue.
func (w *cancellation) remove(x *entry) {
	if w == nil {
		return
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		w.newest = x.older
	}
	if x.older != nil {
		x.older.newer = x.newer
	} else {
		w.oldest = x.newer
	}
	x.cancellation, x.older, x.newer = nil, nil, nil
	w.over()
}

// removeItem counts the removal of an item. Items of a group are not counted: two
// processors would write the same memory for every function.
func (w *cancellation) removeItem(tier int) {
	if w != nil && w.group == nil {
		w.items[tier]--
		w.over()
	}
}

// over counts the removal of a job.
func (w *cancellation) over() {
	if w.n--; w.n == 0 {
		w.engine = nil
		w.stopIfIdle()
	}
}

// stopIfIdle ends the registration of a cancellation that is not kept and has no jobs.
func (w *cancellation) stopIfIdle() {
	if w.n == 0 && !w.kept && w.stopped.CompareAndSwap(false, true) {
		go w.stop() // not here: it may call the context
	}
}

// end is called when the context has ended.
func (w *cancellation) end(e *Engine) {
	cause := context.Cause(w.ctx) // before the lock: it calls the context
	e.lock()
	w.kept = false
	w.stopped.Store(true)
	e.cancellations.latest.CompareAndSwap(w, nil)
	w.refuseAndUnlock(e, cause)
}

// scanMax is how many entries and items are looked at before the lock is released. There may be a
// million of w, and items of other contexts and groups lie between those of w.
const scanMax = 1024

// refuseAndUnlock refuses the queued jobs. It is called with the lock held and returns without it.
// Jobs that are queued meanwhile are behind all others, so they are found too.
func (w *cancellation) refuseAndUnlock(e *Engine, cause error) {
	for {
		all, over := w.pieces(&e.queue)
		e.refuseThese(all, cause)
		e.dispatchAndUnlock(0, false)
		if over {
			return
		}
		e.lock()
	}
}

// pieces returns queued jobs that it finds among the next scanMax entries and items. The caller removes
// them, and the following call passes over the other items. over says that there are no others.
func (w *cancellation) pieces(q *queue) (all []piece, over bool) {
	looks := scanMax
	for x := w.oldest; x != nil; x = x.newer {
		if looks--; looks < 0 {
			return all, false
		}
		all = append(all, q.entered(x))
	}
	for tier, items := range w.items {
		r := &q.runs[tier]
		for items > 0 {
			place, ok := r.next(w.from[tier])
			if !ok || place > w.last[tier] {
				break
			}
			if looks--; looks < 0 {
				return all, false
			}
			w.from[tier] = place + 1
			if r.at(place).cancellation != w {
				continue
			}
			all = append(all, r.piece(tier, place))
			if w.group == nil { // items of a group are not counted
				items--
			}
		}
	}
	return all, true
}
