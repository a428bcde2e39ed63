package run

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
)

// Signals are those that a run acts on.
func Signals() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP,
		// Caught so that a write to a closed pipe, or to a file at the limit of
		// its size, is an error like any other. Ignoring these signals instead
		// would make all jobs ignore them too.
		syscall.SIGPIPE, syscall.SIGXFSZ,
	}
}

// signals is the loop that acts on signals to this process.
func (r *Run) signals(ctx context.Context) {
	for {
		select {
		case sig := <-r.cfg.Signal:
			r.act(sig.(syscall.Signal))
		case <-ctx.Done():
			return
		}
	}
}

func (r *Run) act(sig syscall.Signal) {
	switch sig {
	case syscall.SIGUSR1:
		r.limit.change(+1, r.sched.Resize)
	case syscall.SIGUSR2:
		r.limit.change(-1, r.sched.Resize)
	case syscall.SIGTSTP:
		r.suspend()
	case syscall.SIGPIPE, syscall.SIGXFSZ:
	default:
		if !r.stop.interrupt(sig) {
			r.registry.end(syscall.SIGKILL)
			return
		}
		r.sayWaiting(sig)
	}
}

// sayWaiting says why stint does not end at once.
func (r *Run) sayWaiting(sig syscall.Signal) {
	jobs, second := "1 job that runs", "signal"
	switch n := r.registry.count(); n {
	case 0:
		return
	case 1:
	default:
		jobs = fmt.Sprintf("%d jobs that run", n)
	}
	if sig == syscall.SIGINT {
		second = "Ctrl-C"
	}
	r.cfg.Say(fmt.Sprintf("%v: waiting for %s; a second %s kills at once", sig, jobs, second))
}

// suspend does for the jobs, which are in groups of their own, what the
// terminal's stop key does for its foreground group; then this process stops
// as well, until the shell's fg or bg.
func (r *Run) suspend() {
	r.registry.suspend(proc.StopSelf)
}

// enforce carries out what the stopper has decided: first the jobs that wait
// for another attempt or for slots of others, then those that run. A signal from a person is passed on
// and the jobs may take their time; a second one kills them. A halt, or a
// failure, kills them after the grace period.
func (r *Run) enforce(ctx context.Context) {
	select {
	case <-r.stop.starting.Done():
	case <-ctx.Done():
		return
	}
	r.backoff.close(func(*job) { r.jobs.Done() })
	r.shared.stop()
	select {
	case <-r.stop.ending.Done():
	case <-ctx.Done():
		return
	}
	r.registry.end(r.stop.jobSignal())
	if sig, _ := r.stop.why(); sig != 0 {
		return
	}
	select {
	case <-time.After(r.cfg.KillAfter):
		r.registry.end(syscall.SIGKILL)
	case <-ctx.Done():
	}
}
