package run

import (
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
)

// registry has the running processes, so that signals can be passed on to them. The zero
// value is ready for use, and safe for concurrent use.
type registry struct {
	limit     time.Duration // of each process; 0 means no limit
	killAfter time.Duration // from SIGTERM to SIGKILL for a process that has reached the limit

	// starting is held for reading from before a process starts until it is registered,
	// and for writing while all are suspended; otherwise a process that is just starting
	// would not be suspended. Lock order: before mu.
	starting sync.RWMutex

	mu      sync.Mutex
	running map[*proc.Process]*entry // guarded by mu
	// launching is the number of processes that are starting; guarded by mu.
	launching int
	ended     syscall.Signal // the last signal sent to end all processes; 0: none
}

type entry struct {
	started time.Time
	timeout *timeout // nil without a limit
	// interrupted: the run sent it a signal to end.
	interrupted bool
}

// launch calls start and registers the process that it has started, with its timeout.
func (r *registry) launch(
	started time.Time, start func() (*proc.Process, error),
) (p *proc.Process, t *timeout, err error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	r.mu.Lock()
	r.launching++
	r.mu.Unlock()
	p, err = start()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launching--; err == nil {
		t = startTimeout(p, r.limit, r.killAfter)
		r.add(p, &entry{started: started, timeout: t})
	}
	return p, t, err
}

// add registers a process. If all processes were sent a signal to end while it was
// starting, add sends it that signal too. The caller must hold mu.
func (r *registry) add(p *proc.Process, e *entry) {
	if r.running == nil {
		r.running = map[*proc.Process]*entry{}
	}
	r.running[p] = e
	if r.ended != 0 {
		e.end(p, r.ended)
	}
}

// remove removes a process, and reports whether the run had sent it a signal to end.
func (r *registry) remove(p *proc.Process) (interrupted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	interrupted = r.running[p].interrupted
	delete(r.running, p)
	return interrupted
}

// end sends sig to all processes, and to those that are added later.
func (r *registry) end(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != syscall.SIGKILL { // SIGKILL is final
		r.ended = sig
	}
	for p, e := range r.running {
		e.end(p, sig)
	}
}

// end sends sig to a process, and then SIGCONT: a stopped process receives the signal
// only when it is continued.
func (e *entry) end(p *proc.Process, sig syscall.Signal) {
	e.interrupted = true
	p.Signal(sig)
	p.Signal(syscall.SIGCONT)
}

// suspend stops all processes, as the terminal would if they were in its foreground
// group, calls stopped, and continues them. No process starts meanwhile, and the time does not
// count for the timeouts. If they were sent a signal to end, it does nothing.
func (r *registry) suspend(stopped func()) {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.ending() { // it has begun to end while a process was starting
		return
	}
	r.each(func(p *proc.Process, e *entry) {
		e.timeout.pause()
		p.Signal(syscall.SIGTSTP)
	})
	stopped()
	r.each(func(p *proc.Process, e *entry) {
		p.Signal(syscall.SIGCONT)
		e.timeout.resume()
	})
}

// ending reports whether all processes were sent a signal to end.
func (r *registry) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended != 0
}

func (r *registry) each(do func(*proc.Process, *entry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, e := range r.running {
		do(p, e)
	}
}

// count returns the number of processes, with those that are starting: their programs may run
// already.
func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running) + r.launching
}

// young returns the number of processes that were started less than a given time ago.
func (r *registry) young(now time.Time, than time.Duration) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.running {
		if now.Sub(e.started) < than {
			n++
		}
	}
	return n
}
