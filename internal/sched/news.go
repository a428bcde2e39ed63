package sched

// news is what has been decided under the lock and is acted on without it, because to wake
// a goroutine or to start one takes far longer than to decide.
type news struct {
	granted  entryQueue // goroutines that go on, with a slot or an error
	starting []job      // jobs that get a worker
	refused  []refusal  // jobs that will not run
}

type refusal struct {
	job
	err error
}

func (n *news) none() bool { return n.granted.first == nil && n.starting == nil && n.refused == nil }

// deliver wakes goroutines and starts workers.
func (n *news) deliver(e *Engine) {
	for x := n.granted.first; x != nil; {
		following, sleeps := x.link, x.sleeps // before it goes on, and x is used again
		x.link = nil
		x.ready <- struct{}{}
		if sleeps {
			e.shared.sleeper.Rouse()
		}
		x = following
	}
	for _, j := range n.starting {
		go e.work(j)
	}
}

// publishAll publishes the errors of jobs that are refused, the last of which was refused
// first, and returns when that is done. It does so in a goroutine of its own: their
// teardowns may end it, and the caller has a slot to run on, to wait for or to give back.
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
