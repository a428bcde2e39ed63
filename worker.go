package stint

// worker is a goroutine that runs jobs. It is started for one, goes on with
// the next for as long as there is one, and ends: an idle scheduler has none.
type worker struct {
	c       *core
	entry   *entry // the job to run, or that runs
	current *task  // the context of the job that runs, set by it; nil between jobs
	spare   *task  // that of the last group's job, for the next one of the same group
}

// work runs e and whatever is handed over after it.
func (c *core) work(e *entry) {
	c.mu.Lock()
	c.waking.Store(false)
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)

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
	freed := c.endJob(w, ended)
	var granted *entry
	if w.entry = c.handOver(freed); w.entry == nil {
		c.volunteer = true
		granted = c.dispatch(freed, freed > 0)
		w.entry = c.volunteered
		c.volunteer, c.volunteered = false, nil
	}
	w.current = nil
	w.pass(w.entry, freed > 0)
	c.recycleLocked(ended)
	c.mu.Unlock()
	c.deliver(granted)
	t.stop()
	done.settle()
}

// pass readies the spare context for the following job, or drops it: because
// there is none, or because a goroutine that outlives its job still waits with
// it. The lock is held, since such a goroutine may read it.
func (w *worker) pass(following *entry, held bool) {
	switch {
	case w.spare == nil:
	case following == nil || !held:
		w.spare.state.Store(taskEnded)
		w.spare = nil
	default:
		w.spare.e = following
	}
}
