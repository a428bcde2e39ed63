package sched

import "context"

// arrival is a job to submit. Its methods keep no pointer to it, so it is on the stack of the
// submitter; only a blocked submitter has a copy elsewhere.
type arrival struct {
	e *Engine
	Ask

	job          Job
	group        *Group        // of a function of a group, else nil
	cancellation *cancellation // of its context, or nil
	from         origin        // what submits it
	caller       *Hold         // of the function that submits it; set only if the engine has been closed
}

// origin is what submits a job. It decides what happens while a bounded queue is full.
type origin uint8

const (
	fromFunction   origin = iota // a function, or code outside of any: it suspends its slots while it waits for room
	besideFunction               // a goroutine beside a function, which keeps its slots
	continuation                 // the end of a job that this one continues: it needs no room
)

// submit queues a job, or starts it at once in a goroutine of its own. It blocks only
// while a bounded queue is full, and never for the continuation of accepted work.
func (a *arrival) submit(ctx context.Context) error {
	e := a.e
	e.lock()
	if e.follows(a.Ask) {
		a.enqueueItem()
		e.unlock()
		return nil
	}
	return a.submitAndUnlock(ctx)
}

// follows reports whether a job only needs to be queued, because it is behind others like
// it.
func (e *Engine) follows(a Ask) bool {
	return e.items && a.plain() && e.queue.runs[a.Tier].n > 0 && !e.closed
}

// submitAndUnlock is submit for a caller that holds the lock.
func (a *arrival) submitAndUnlock(ctx context.Context) error {
	e := a.e
	if err := e.refuses(int(a.Weight), a.caller.runs()); err != nil {
		e.unlock()
		if err != ErrClosed || a.caller != nil || e.killed.Load() { //nolint:errorlint // it is not wrapped
			return err
		}
		if a.caller = callerOn(e, innermost(ctx)); a.caller == nil { // without the lock: it calls the context
			return err
		}
		e.lock()
		return a.submitAndUnlock(ctx)
	}
	if !e.queue.behind(a.Ask) && e.mayStart() && a.start() {
		return nil
	}
	if a.from != continuation && e.cfg.Queue > 0 && (e.full() || e.blocked.any()) {
		if e.cfg.Refuse {
			e.dispatchAndUnlock(0, false)
			return ErrQueueFull
		}
		err := e.blocked.wait(ctx, *a)
		if err == ErrClosed && !e.killed.Load() { //nolint:errorlint // it is not wrapped
			e.lock() // again, as a running function may still submit while the engine drains
			return a.submitAndUnlock(ctx)
		}
		return err
	}
	if a.enqueue() {
		e.dispatch(0, false)
	}
	e.unlock()
	return nil
}

// try starts a job in a goroutine of its own if it can start at once; otherwise it leaves
// no trace. The lock is held; if try returns true, it has released it.
func (a *arrival) try() bool {
	e := a.e
	e.startWaiting()
	return e.refuses(int(a.Weight), false) == nil && a.start()
}

// startWaiting starts the jobs that only wait for a worker to arrive: see mayStart.
func (e *Engine) startWaiting() {
	if !e.waking.Load() || e.nothingWaits() {
		return
	}
	for {
		var w worker // takes a job, for which a goroutine is started
		e.volunteer = &w
		e.dispatch(0, false)
		e.volunteer = nil
		if w.job.Job == nil {
			return
		}
		e.decided.starting = append(e.decided.starting, w.job)
	}
}

// start starts a job in a goroutine of its own if nothing that waits goes first. If it
// does, it releases the lock.
func (a *arrival) start() bool {
	e := a.e
	if e.cfg.Slots == nil && !e.admits(a.Ask, e.gate.running()) {
		return false
	}
	j := job{Job: a.job, group: a.group}
	x := &e.plain
	if e.needsEntry(a.Ask) {
		j.x = a.entry()
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

// needsEntry reports whether work needs an entry of its own.
func (c *core) needsEntry(a Ask) bool { return !a.plain() || c.tracks }

func (a *arrival) entry() *entry {
	x := a.e.entries.get(a.Ask)
	x.job, x.group = a.job, a.group
	return x
}

// enqueue queues a job. It returns false if the job is behind others like it, so that
// nothing else may start because of it.
func (a *arrival) enqueue() (changed bool) {
	e := a.e
	if e.needsEntry(a.Ask) {
		x := a.entry()
		place(a.job, x, 0)
		x.push(a.cancellation)
		return true
	}
	behind := e.queue.behind(a.Ask)
	a.enqueueItem()
	return !behind || e.full()
}

// enqueueItem queues a job as an item without an entry.
func (a *arrival) enqueueItem() {
	e := a.e
	tier, since := int(a.Tier), e.queue.arrives(int(a.Tier))
	at := e.queue.put(item{a.job, a.cancellation, since}, tier, 1)
	place(a.job, &e.plain, uint64(tier)<<tierShift|at)
	a.cancellation.rearm(e)
	a.cancellation.addItem(tier, at)
}

// tierShift is the position of the tier in the place that a call keeps for its item.
const tierShift = 60

// place records the entry and place of a call, before it is queued or runs.
func place(job Job, x *entry, at uint64) {
	if c := job.call(); c != nil {
		if c.task.x != x { // mostly it is e.plain already
			c.task.x = x
		}
		c.place = at
	}
}
