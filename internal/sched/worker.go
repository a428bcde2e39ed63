package sched

import (
	"context"
	"time"
)

// worker is a goroutine that runs jobs. It is started for one, continues with the next
// while there is one, and ends: an idle engine has none.
type worker struct {
	e     *Engine
	job   job        // the job to run, or that runs; its Job is nil if there is none
	began int64      // when it got the job, by the engine's clock, or notRead
	runs  bool       // the job runs, and hold and task are set
	hold  *Hold      // of the job on its slots
	task  *Task      // of the job, nil if it has none
	jobs  []groupJob // contexts for the jobs of groups
	used  int        // how many of jobs are in use
	group *Group     // of the jobs in ended
	ended int64      // jobs of group that have ended and are not counted yet, as the next one is of group too
}

// work runs j and each job that is handed over after it.
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

// A worker without a job looks for one spinLooks times, and spins for spinTurns
// iterations of an empty loop between looks: a few microseconds in all.
const (
	spinLooks = 32
	spinTurns = 256
)

// spin waits a little for more work before the worker ends. Ending and starting again
// costs more than many small jobs, and a program that submits those in a loop is about to
// submit the next. Meanwhile the worker counts as the one that is being woken, so that no
// other is started.
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

// notRead marks a time that is not known exactly.
const notRead = -1

// begin records when the worker gets its job. The lock is held.
func (w *worker) begin(at int64) {
	q := &w.e.queue
	q.jobs.begin(at)
	if w.began = at; !q.clock.finishes.exact() {
		w.began = notRead
	}
}

// endAt records when the job ends. The lock is held.
func (w *worker) endAt(at int64) {
	q := &w.e.queue
	q.jobs.running--
	if w.began != notRead && q.clock.finishes.exact() && !w.e.cfg.Holders {
		q.jobs.sample(at - w.began)
	}
}

// replace starts a new worker for the job that this one still has. There is one if a
// function called runtime.Goexit, which ends this goroutine but not its work.
func (w *worker) replace() {
	defer func() { // deferred, since a teardown may call Goexit too
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

// finish releases the slot, accepts the job that is handed over, if any, and publishes
// the outcome of the job that has ended.
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
	} else { // no job was handed over
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

// count counts the end of a job of g. While the next job is of the same group, the group
// cannot have ended, and its counter, which many workers write, is not touched.
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

// groupJob is the context of a group's job: the group's, with the slot of the job. Each
// job has its own, because a goroutine that outlives the job may still have its context.
// They are allocated together, in batches that grow with the number of jobs of a worker.
type groupJob struct {
	g *Group
	Hold
}

// maxJobs fills an allocation of 1 KiB.
const maxJobs = 42

func (j *groupJob) Deadline() (time.Time, bool) { return j.g.ctx.Deadline() }
func (j *groupJob) Done() <-chan struct{}       { return j.g.ctx.Done() }
func (j *groupJob) Err() error                  { return j.g.ctx.Err() }

// Value returns the job for holdKey, and the group's value for any other key.
func (j *groupJob) Value(key any) any {
	if _, ok := key.(holdKey); ok {
		return j
	}
	return j.g.ctx.Value(key)
}

// groupContext returns the context for a group's job. With shared slots it is a Task,
// because each job may lose its slot.
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
