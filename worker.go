package stint

// worker is a goroutine that runs jobs. It is started for one, goes on with
// the next for as long as there is one, and ends: an idle scheduler has none.
type worker struct {
	c       *core
	current *task // the context of the job that runs
	spare   *task // that of the last group's job, for the next one of the same group
}

// work runs e and whatever is handed over after it.
func (c *core) work(e *entry) {
	c.mu.Lock()
	c.waking = false
	granted := c.dispatch(0, false)
	c.mu.Unlock()
	c.deliver(granted)

	w := worker{c: c}
	returned := false
	defer func() {
		if !returned {
			// The job called runtime.Goexit, which ends this goroutine but not its work.
			w.replace(e)
		}
	}()
	for e != nil {
		e.Value.job.run(&w, e)
		e = w.finish(e)
	}
	returned = true
}

// replace finishes e and lets a new worker go on.
func (w *worker) replace(e *entry) {
	if following := w.finish(e); following != nil {
		c := w.c
		c.mu.Lock()
		c.waking = true
		c.mu.Unlock()
		go c.work(following)
	}
}

// finish gives e's slot back, publishes the outcome of its job, and returns
// the job that this worker has been handed, if any.
func (w *worker) finish(e *entry) (following *entry) {
	c, done := w.c, e.Value.job
	c.mu.Lock()
	freed := c.end(w.current, e)
	c.volunteer = true
	granted := c.dispatch(freed, freed > 0)
	following = c.volunteered
	c.volunteer, c.volunteered = false, nil
	w.pass(following, freed > 0)
	c.recycleLocked(e)
	c.mu.Unlock()
	c.deliver(granted)
	w.current.stop()
	done.settle()
	return following
}

// pass readies the spare context for the following job, or drops it: because
// there is none, or because a goroutine that outlives its job still waits with
// it. The lock is held, since such a goroutine may read it.
func (w *worker) pass(following *entry, held bool) {
	switch {
	case w.spare == nil:
	case following == nil || !held:
		w.spare = nil
	default:
		w.spare.e = following
		w.spare.state.Store(taskHolding)
	}
}
