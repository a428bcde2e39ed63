package sched

import (
	"context"
	"time"
)

// worker is a goroutine that runs jobs. It is started for one, goes on with
// the next for as long as there is one, and ends: an idle engine has none.
type worker struct {
	e     *Engine
	job   job        // that is to run, or runs; nil if there is none
	began int64      // when it got that, by the engine's clock, or notRead
	runs  bool       // it runs, and has set
	hold  *Hold      // what it holds, and
	task  *Task      // its task, nil if it has none
	jobs  []groupJob // for the contexts of the jobs of groups
	used  int        // of them
	group *Group     // of which this worker has run jobs whose end is not counted yet,
	ended int64      // as its next job is of that group too: this many
}

// work runs j and whatever is handed over after it.
func (e *Engine) work(j job) {
	w := worker{e: e, job: j}
	e.lock()
	e.workers++
	e.waking.Store(false)
	w.begin(e.queue.finishes())
	e.dispatchAndUnlock(0, false)

	defer w.replace()
	for w.job.Job != nil {
		w.job.run(&w)
		w.finish()
		if w.job.Job == nil {
			w.spin()
		}
	}
}

// A worker without work looks for more this often, and passes this many turns
// of an empty loop between looks: a few microseconds in all.
const (
	spinLooks = 32
	spinTurns = 256
)

// spin waits a little for more work before the worker ends. To end and to
// start again costs more than many small jobs, and a program that submits those in a
// loop is about to bring the next. Meanwhile it counts as the one worker that
// is being woken, so that no other is started.
func (w *worker) spin() {
	e := w.e
	if !e.parallel || !e.waking.CompareAndSwap(false, true) {
		return
	}
	for looks := 0; looks < spinLooks && e.gate.word.Load()&closedMask == 0 && spin(spinTurns); {
		looks++
	}
	e.lock()
	e.waking.Store(false)
	e.volunteer = w
	e.dispatch(0, false)
	e.volunteer = nil
	if w.job.Job != nil {
		w.begin(e.queue.finishes())
	}
	e.unlock()
}

// notRead is a time that is not known exactly.
const notRead = -1

// begin notes when the worker gets its job. The lock is held.
func (w *worker) begin(at int64) {
	q := &w.e.queue
	q.jobs.begin(at)
	if w.began = at; !q.clock.finishes.exact() {
		w.began = notRead
	}
}

// endAt notes when the job ends. The lock is held.
func (w *worker) endAt(at int64) {
	q := &w.e.queue
	q.jobs.running--
	if w.began != notRead && q.clock.finishes.exact() && !w.e.cfg.Holders {
		q.jobs.sample(at - w.began)
	}
}

// replace lets a new worker go on with what this one has left: something, if a
// function called runtime.Goexit, which ends this goroutine but not its work.
func (w *worker) replace() {
	defer func() { // also if a teardown ends the goroutine once more
		w.count(nil)
		w.e.lock()
		defer w.e.unlock()
		w.e.workers--
		if w.job.Job != nil {
			w.e.queue.jobs.running-- // the new worker counts it
			w.e.waking.Store(true)
			go w.e.work(w.job)
			return
		}
		w.e.noticeIdle()
	}()
	if w.job.Job != nil && w.runs {
		w.finish()
	}
}

// finish gives the slot back, takes on the job that this worker is handed, if
// any, and publishes the outcome of the one that has ended.
func (w *worker) finish() {
	e, done, t := w.e, w.job, w.task
	e.lock()
	at := e.queue.finishes()
	w.endAt(at)
	freed := w.end()
	e.volunteer = w
	if !e.handOver(freed) {
		e.dispatch(freed, freed > 0)
	}
	if e.volunteer == nil {
		w.begin(at)
	} else { // it has got no job
		w.job, e.volunteer = job{}, nil
	}
	w.runs = false
	if done.x != nil {
		done.x.recycle()
	}
	e.unlock()
	if t != nil {
		t.stop()
	}
	w.count(done.group)
	if done.group == nil {
		done.call().settle()
	}
}

// count counts the end of a job of g. While the next job is of the same group, that cannot
// have ended, and its counter, which many workers write, is left alone.
func (w *worker) count(g *Group) {
	if w.group != nil && w.group != g {
		w.group.end(w.ended)
		w.group, w.ended = nil, 0
	}
	if g == nil {
		return
	}
	w.group = g
	w.ended++
	if w.job.group != g {
		g.end(w.ended)
		w.group, w.ended = nil, 0
	}
}

// end ends the hold of the job on its slots.
func (w *worker) end() (freed int) {
	if w.task == nil {
		return w.hold.endJob()
	}
	return w.hold.end()
}

// groupJob is the context of a group's job: that of the group, but that it
// knows its slot. Each job has its own, because what outlives a job may still
// hold its context. They are allocated together, more and more of them as a
// worker lives.
type groupJob struct {
	g *Group
	Hold
}

// As many as fill an allocation of 1 KiB.
const maxJobs = 42

func (j *groupJob) Deadline() (time.Time, bool) { return j.g.ctx.Deadline() }
func (j *groupJob) Done() <-chan struct{}       { return j.g.ctx.Done() }
func (j *groupJob) Err() error                  { return j.g.ctx.Err() }

// Value is as that of a task.
func (j *groupJob) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		return j
	}
	return j.g.ctx.Value(key)
}

// groupContext returns the context for a group's job. With shared slots it is a
// task, because each job may lose its slot.
func (w *worker) groupContext(g *Group) context.Context {
	x := w.job.x
	if w.e.cfg.Slots != nil {
		t := &Task{parent: g.ctx, Hold: Hold{x: x}}
		w.runs, w.hold, w.task = true, &t.Hold, t
		w.e.shared.bind(x, t)
		return t
	}
	if w.used == len(w.jobs) {
		w.jobs = make([]groupJob, min(max(2*w.used, 1), maxJobs))
		w.used = 0
	}
	j := &w.jobs[w.used]
	w.used++
	j.g, j.x = g, x
	if x == nil {
		j.x = &w.e.plain
	}
	w.runs, w.hold = true, &j.Hold
	if w.task != nil {
		w.task = nil
	}
	return j
}
