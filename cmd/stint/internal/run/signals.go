package run

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
)

// Signals returns the signals that a run handles.
func Signals() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP,
		// Caught so that writing to a closed pipe, or past the file size limit, returns
		// an error. If these signals were ignored instead, all jobs would ignore them
		// too.
		syscall.SIGPIPE, syscall.SIGXFSZ,
	}
}

// signals handles signals to this process until ctx ends.
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
		r.interrupt(sig)
	}
}

// interrupt ends the run: a first signal is passed on to the jobs, a second kills them. A
// third ends this process, which may be waiting for a reader of its output, or for the
// other end of a named pipe.
func (r *Run) interrupt(sig syscall.Signal) {
	switch r.stop.interrupt(sig) {
	case 1:
		r.saying.Go(func() { r.sayWaiting(sig) })
	case 2:
		r.registry.end(syscall.SIGKILL)
	default:
		first, _ := r.stop.why()
		r.cfg.Die(first)
	}
}

// sayWaiting reports why stint does not end at once.
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

// suspend does for the jobs, which are in process groups of their own, what the
// terminal's stop key does for its foreground group; then this process stops too, until
// the shell's fg or bg.
func (r *Run) suspend() {
	r.registry.suspend(proc.StopSelf)
}

// enforce carries out what the stopper has decided: first for the jobs that wait for
// another attempt or for shared slots, then for those that run. A signal from a user is
// passed on, without a time limit for the jobs; a second signal kills them. A halt or a
// failure kills them after the grace period.
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
