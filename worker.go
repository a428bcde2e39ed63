package stint

// worker is a goroutine that runs jobs. It is started for one, goes on with
// the next for as long as there is one, and ends: an idle scheduler has none.
type worker struct {
	c       *core
	entry   *entry // the job to run, or that runs
	current *task  // the context of the job that runs, set by it; nil between jobs
	tasks   []task // for the contexts of the jobs of groups
	made    int    // length of the last chunk of tasks
}

// work runs e and whatever is handed over after it.
func (c *core) work(e *entry) {
	c.mu.Lock()
	c.waking.Store(false)
	c.dispatchAndUnlock(0, false)

	w := worker{c: c, entry: e}
	defer w.replace()
	for w.entry != nil {
		w.entry.Value.job.run(&w, w.entry)
		w.finish()
	}
}

// replace lets a new worker go on with what this one has left: something, if a
// function called runtime.Goexit, which ends this goroutine but not its work.
func (w *worker) replace() {
	if w.entry != nil && w.current != nil {
		w.finish()
	}
	if w.entry != nil {
		w.c.waking.Store(true)
		go w.c.work(w.entry)
	}
}

// finish gives the slot back, takes on the job that this worker is handed, if
// any, and publishes the outcome of the one that has ended.
func (w *worker) finish() {
	c, ended, t := w.c, w.entry, w.current
	done := ended.Value.job
	c.mu.Lock()
	freed := c.endJob(t, ended)
	var granted *entry
	if w.entry = c.handOver(freed); w.entry == nil {
		c.volunteer = true
		granted = c.dispatch(freed, freed > 0)
		w.entry = c.volunteered
		c.volunteer, c.volunteered = false, nil
	}
	w.current = nil
	c.recycleLocked(ended)
	c.mu.Unlock()
	c.deliver(granted)
	t.stop()
	done.settle()
}

// maxTasks is how many contexts a worker allocates at a time.
const maxTasks = 32

// task returns a new context for a group's job. Each job has its own, because
// what outlives a job may still hold its context; they are allocated together,
// more and more of them as the worker lives.
func (w *worker) task(g *Group, e *entry) *task {
	if len(w.tasks) == 0 {
		w.made = min(max(2*w.made, 1), maxTasks)
		w.tasks = make([]task, w.made)
	}
	t := &w.tasks[0]
	w.tasks = w.tasks[1:]
	t.parent, t.c, t.e = g.ctx, w.c, e
	if w.c.slots != nil { // each may lose its slot
		t.parent = g.ctx.Context
		w.c.bindGrant(e, t)
	}
	return t
}
