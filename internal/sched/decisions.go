package sched

// decisions are made under the lock, and acted on without it: waking or starting a
// goroutine takes far longer than deciding.
type decisions struct {
	granted  entryQueue // goroutines that continue, with a slot or an error
	starting []job      // jobs that get a worker
	refused  []refusal  // jobs that will not run
}

type refusal struct {
	job
	err error
}

func (d *decisions) none() bool {
	return d.granted.first == nil && d.starting == nil && d.refused == nil
}

// deliver wakes goroutines and starts workers.
func (d *decisions) deliver(e *Engine) {
	for x := d.granted.first; x != nil; {
		following, sleeps := x.link, x.sleeps // read before x.ready: the goroutine recycles x
		x.link = nil
		x.ready <- struct{}{}
		if sleeps {
			e.shared.sleeper.Rouse()
		}
		x = following
	}
	for _, j := range d.starting {
		go e.work(j)
	}
}

// publishAll publishes the errors of refused jobs, the last refused one first, and
// returns when all are published. It uses another goroutine, which a teardown may end,
// while the caller still has a slot to run on, to wait for or to release.
func publishAll(e *Engine, refused []refusal) {
	published := make(chan struct{})
	go func() {
		defer close(published)
		defer func() {
			e.lock()
			e.workers -= len(refused)
			e.noticeIdle()
			e.unlock()
		}()
		for _, r := range refused {
			r.Forget()
			defer r.refuse(r.err)
		}
	}()
	<-published
}
