package stint

import (
	"context"
	"time"
)

// worker is a goroutine that runs jobs. It is started for one, goes on with
// the next for as long as there is one, and ends: an idle scheduler has none.
type worker struct {
	c     *core
	entry *entry     // the job to run, or that runs
	hold  *hold      // of the job that runs, set by it; nil between jobs
	task  *task      // and its task, if it has one
	jobs  []groupJob // for the contexts of the jobs of groups
	made  int        // length of the last chunk of them
}

// work runs e and whatever is handed over after it.
func (c *core) work(e *entry) {
	c.lock()
	c.workers++
	c.waking.Store(false)
	c.dispatchAndUnlock(0, false)

	w := worker{c: c, entry: e}
	defer w.replace()
	for w.entry != nil {
		w.entry.Value.job.run(&w, w.entry)
		w.finish()
		if w.entry == nil {
			w.linger()
		}
	}
}

// A worker without work looks for more this often, and passes this many turns
// of an empty loop between looks: a few microseconds in all.
const (
	lingerLooks = 32
	lingerTurns = 256
)

// linger waits a little for more work before the worker ends. To end and to
// start again costs more than many small jobs, and whoever submits those in a
// loop is about to bring the next. Meanwhile it counts as the one worker that
// is being woken, so that nobody starts another.
func (w *worker) linger() {
	c := w.c
	if !c.parallel || !c.waking.CompareAndSwap(false, true) {
		return
	}
	const waiting = closedMask | postedMask
	for looks := 0; looks < lingerLooks && c.word.Load()&waiting == 0 && spin(lingerTurns); {
		looks++
	}
	c.lock()
	c.waking.Store(false)
	c.volunteer = true
	c.dispatch(0, false)
	w.entry = c.volunteered
	c.volunteer, c.volunteered = false, nil
	c.unlock()
}

// replace lets a new worker go on with what this one has left: something, if a
// function called runtime.Goexit, which ends this goroutine but not its work.
func (w *worker) replace() {
	defer func() { // also if a teardown ends the goroutine once more
		w.c.lock()
		defer w.c.unlock()
		w.c.workers--
		if w.entry != nil {
			w.c.waking.Store(true)
			go w.c.work(w.entry)
			return
		}
		w.c.noticeIdle()
	}()
	if w.entry != nil && w.hold != nil {
		w.finish()
	}
}

// finish gives the slot back, takes on the job that this worker is handed, if
// any, and publishes the outcome of the one that has ended.
func (w *worker) finish() {
	c, ended, t := w.c, w.entry, w.task
	done := ended.Value.job
	c.lock()
	freed := w.end()
	c.volunteer = true
	if !c.handOver(freed) {
		c.dispatch(freed, freed > 0)
	}
	w.entry = c.volunteered
	c.volunteer, c.volunteered = false, nil
	w.hold, w.task = nil, nil
	c.recycle(ended)
	c.unlock()
	if t != nil {
		t.stop()
	}
	done.settle()
}

// end ends the hold of the job on its slots.
func (w *worker) end() (freed int) {
	if w.task == nil {
		return w.c.endGroupJob(w.hold, w.entry)
	}
	return w.c.end(w.hold, w.entry)
}

// groupJob is the context of a group's job: that of the group, but that it
// knows its slot. Each job has its own, because what outlives a job may still
// hold its context. They are allocated together, more and more of them as a
// worker lives.
type groupJob struct {
	g *Group
	hold
}

const maxJobs = 32

func (j *groupJob) Deadline() (time.Time, bool) { return j.g.ctx.Deadline() }
func (j *groupJob) Done() <-chan struct{}       { return j.g.ctx.Done() }
func (j *groupJob) Err() error                  { return j.g.ctx.Err() }

// Value is as that of a task.
func (j *groupJob) Value(key any) any {
	if c, ok := key.(*core); ok && c == j.g.s.c {
		return &j.hold
	}
	return j.g.ctx.Value(key)
}

// groupContext returns the context for a group's job. With shared slots it is a
// task, because each job may lose its slot.
func (w *worker) groupContext(g *Group, e *entry) context.Context {
	if w.c.slots != nil {
		t := &task{parent: g.ctx, c: w.c, hold: hold{e: e}}
		w.hold, w.task = &t.hold, t
		w.c.bindGrant(e, t)
		return t
	}
	if len(w.jobs) == 0 {
		w.made = min(max(2*w.made, 1), maxJobs)
		w.jobs = make([]groupJob, w.made)
	}
	j := &w.jobs[0]
	w.jobs = w.jobs[1:]
	j.g, j.e = g, e
	w.hold, w.task = &j.hold, nil
	return j
}
