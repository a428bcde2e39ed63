package sched

import "context"

// arrival is a job to submit.
type arrival struct {
	Ask

	job          Job
	group        *Group        // that it is a function of, if it is one
	cancellation *cancellation // of its context
	continues    bool          // the work of another job
	caller       *Hold         // of the function that submits it; known only if the engine has been closed
}

// submit queues a job, or starts it at once in a goroutine of its own. It blocks only
// while a bounded queue is full, and never for the continuation of accepted work.
func (e *Engine) submit(ctx context.Context, a arrival) error {
	e.lock()
	if e.follows(a.Ask) {
		a.line(e)
		e.unlock()
		return nil
	}
	return e.submitAndUnlock(ctx, a)
}

// follows reports whether a job has only to be queued, as it is behind others like it.
func (e *Engine) follows(a Ask) bool {
	return e.items && a.plain() && e.queue.runs[a.Tier].n > 0 && !e.closed
}

// submitAndUnlock is submit for a caller that has the lock.
func (e *Engine) submitAndUnlock(ctx context.Context, a arrival) error {
	e.makeWay()
	if err := e.refuses(int(a.Weight), a.caller.runs()); err != nil {
		e.unlock()
		if err != ErrClosed || a.caller != nil || e.killed.Load() { //nolint:errorlint // it is not wrapped
			return err
		}
		if a.caller = callerOn(e, innermost(ctx)); a.caller == nil { // without the lock: it calls the context
			return err
		}
		e.lock()
		return e.submitAndUnlock(ctx, a)
	}
	if !e.queue.behind(a.Ask) && e.mayStart() && a.start(e) {
		return nil
	}
	if !a.continues && e.cfg.Queue > 0 && (e.full() || e.blocked.any()) {
		if e.cfg.Refuse {
			e.dispatchAndUnlock(0, false)
			return ErrQueueFull
		}
		return e.blocked.wait(ctx, a)
	}
	if a.enqueue(e) {
		e.dispatch(0, false)
	}
	e.unlock()
	return nil
}

// try starts a job if that needs no waiting, in a goroutine of its own. Otherwise it is as if the job
// had not come. The lock is held; if it reports true, it has been given up.
func (a *arrival) try(e *Engine) bool {
	e.startWaiting()
	return e.refuses(int(a.Weight), false) == nil && a.start(e)
}

// startWaiting starts the jobs that wait only for a worker to be on its way: see mayStart.
func (e *Engine) startWaiting() {
	if !e.waking.Load() || e.nothingWaits() {
		return
	}
	for {
		var w worker // takes a job, for a goroutine to be started for it
		e.volunteer = &w
		e.dispatch(0, false)
		e.volunteer = nil
		if w.job.Job == nil {
			return
		}
		e.news.starting = append(e.news.starting, w.job)
	}
}

// start starts a job that nothing waits before, in a goroutine of its own.
// If it does, it gives up the lock.
func (a *arrival) start(e *Engine) bool {
	if e.cfg.Slots == nil && !e.admits(a.Ask, e.gate.running()) {
		return false
	}
	j := job{Job: a.job, group: a.group}
	x := &e.plain
	if e.needsEntry(a.Ask) {
		j.x = a.entry(e)
		x = j.x
	}
	place(a.job, x, 0)
	if !e.admit(a.Ask, x) {
		x.recycle()
		return false
	}
	e.waking.Store(true)
	e.unlock()
	go e.work(j)
	return true
}

// needsEntry reports whether a job is more than one slot and its turn.
func (c *core) needsEntry(a Ask) bool { return !a.plain() || c.tracks }

func (a *arrival) entry(e *Engine) *entry {
	x := e.entry(a.Ask)
	x.job, x.group = a.job, a.group
	return x
}

// enqueue queues a job, which its watch takes out again. It reports false if the job is behind
// others like it, so that nothing else may start than before.
func (a *arrival) enqueue(e *Engine) (changed bool) {
	if e.needsEntry(a.Ask) {
		x := a.entry(e)
		place(a.job, x, 0)
		x.push(a.cancellation)
		return true
	}
	behind := e.queue.behind(a.Ask)
	a.line(e)
	return !behind || e.full()
}

// line queues a job that is an item alone.
func (a *arrival) line(e *Engine) {
	tier, since := int(a.Tier), e.queue.arrives(int(a.Tier))
	at := e.queue.put(item{a.job, a.cancellation, since}, tier, 1)
	place(a.job, &e.plain, uint64(tier)<<tierShift|at)
	a.cancellation.rearm(e)
	a.cancellation.addItem(tier, at)
}

// tierShift is where the tier of an item is in the place that its call keeps.
const tierShift = 60

// place notes for a call where it is, before it is queued or runs.
func place(job Job, x *entry, at uint64) {
	if c := job.call(); c != nil {
		c.task.x, c.place = x, at
	}
}
