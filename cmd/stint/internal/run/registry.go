package run

import (
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
)

// registry knows the processes that run, in order to pass signals on. The zero
// value is ready for use, from any goroutine.
type registry struct {
	// starting is held for reading while a process starts until it is known
	// here, and for writing while all is stopped: a process that is between the
	// two would go on alone. It is taken before mu.
	starting sync.RWMutex

	mu      sync.Mutex
	running map[*proc.Process]*entry // guarded by mu
	ended   syscall.Signal           // the last signal that was sent to end all; 0: none
}

type entry struct {
	started time.Time
	// interrupted: it was told to end, through no fault of its own.
	interrupted bool
}

// launch calls start and registers the process that it has started.
func (r *registry) launch(started time.Time, start func() (*proc.Process, error)) (*proc.Process, error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	p, err := start()
	if err == nil {
		r.add(p, started)
	}
	return p, err
}

// add registers a process. A signal that all others got while it was starting
// reaches it too.
func (r *registry) add(p *proc.Process, started time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[*proc.Process]*entry{}
	}
	e := &entry{started: started}
	r.running[p] = e
	if r.ended != 0 {
		e.end(p, r.ended)
	}
}

// remove forgets a process, and reports whether it had been told to end.
func (r *registry) remove(p *proc.Process) (interrupted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	interrupted = r.running[p].interrupted
	delete(r.running, p)
	return interrupted
}

// end sends a signal that ends them to all processes, and to those that come.
func (r *registry) end(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != syscall.SIGKILL { // nothing is stronger, whichever comes first
		r.ended = sig
	}
	for p, e := range r.running {
		e.end(p, sig)
	}
}

// end tells a process to end. One that is stopped sees the signal only when it
// is continued.
func (e *entry) end(p *proc.Process, sig syscall.Signal) {
	e.interrupted = true
	p.Signal(sig)
	p.Signal(syscall.SIGCONT)
}

// suspend stops all processes, as the terminal would have if they were in its
// foreground, and continues them when stopped returns. None starts meanwhile.
func (r *registry) suspend(stopped func()) {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.pass(syscall.SIGTSTP)
	stopped()
	r.pass(syscall.SIGCONT)
}

func (r *registry) pass(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.running {
		p.Signal(sig)
	}
}

// count is the number of processes.
func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// young counts the processes that were started less than a while ago.
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
