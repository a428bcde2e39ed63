package run

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

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

// signalHandler carries out the signals to this process: some change the number of jobs,
// one suspends the run, the others end it.
type signalHandler struct {
	cfg      *Config
	limit    *limit
	registry *registry
	stop     *stopper

	suspending atomic.Bool // suspend is under way

	// said is closed when the message about the first signal is written, which may wait for a
	// reader of standard error; nil: there is none. Owned by run.
	said chan struct{}
}

// run handles signals until ctx ends. While a message is not written yet, it goes on, so that
// a signal can end the wait for a reader.
func (h *signalHandler) run(ctx context.Context) {
	for {
		select {
		case sig := <-h.cfg.Signal:
			h.handle(sig.(syscall.Signal))
		case <-ctx.Done():
			h.finish()
			return
		}
	}
}

// finish handles signals until the message is written, if there is one.
func (h *signalHandler) finish() {
	for h.said != nil {
		select {
		case sig := <-h.cfg.Signal:
			h.handle(sig.(syscall.Signal))
		case <-h.said:
			return
		}
	}
}

func (h *signalHandler) handle(sig syscall.Signal) {
	switch sig {
	case syscall.SIGUSR1:
		h.limit.change(+1)
	case syscall.SIGUSR2:
		h.limit.change(-1)
	case syscall.SIGTSTP:
		h.suspend()
	case syscall.SIGPIPE, syscall.SIGXFSZ:
	default:
		h.interrupt(sig)
	}
}

// suspend stops the jobs and this process, until fg or bg of the shell. It does not wait for that: a
// process that is just starting delays it, and other signals are handled meanwhile.
func (h *signalHandler) suspend() {
	if h.suspending.CompareAndSwap(false, true) {
		go func() {
			defer h.suspending.Store(false)
			h.registry.suspend(proc.StopSelf)
		}()
	}
}

// interrupt ends the run: a first signal is passed on to the jobs, a second kills them. A
// third ends this process, which may be waiting for a reader of its output, or for the
// other end of a named pipe.
func (h *signalHandler) interrupt(sig syscall.Signal) {
	switch h.stop.interrupt(sig) {
	case 1:
		h.said = make(chan struct{})
		go func() {
			defer close(h.said)
			h.sayWaiting(sig)
		}()
	case 2:
		h.registry.end(syscall.SIGKILL)
	default:
		first, _ := h.stop.why()
		h.cfg.Die(first)
	}
}

// sayWaiting reports why stint does not end at once.
func (h *signalHandler) sayWaiting(sig syscall.Signal) {
	jobs, second := "1 job that runs", "signal"
	switch n := h.registry.count(); n {
	case 0:
		return
	case 1:
	default:
		jobs = fmt.Sprintf("%d jobs that run", n)
	}
	if sig == syscall.SIGINT {
		second = "Ctrl-C"
	}
	h.cfg.Say(fmt.Sprintf("%v: waiting for %s; a second %s kills at once", sig, jobs, second))
}
