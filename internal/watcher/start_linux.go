package watcher

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/internal/proc"
)

// Program is the file of this process, whatever has become of its name.
const Program = "/proc/self/exe"

// Watcher is the watched side: the table, and the process that reads it. A nil
// Watcher watches nothing. Cell may be called from any goroutine until Stop.
type Watcher struct {
	cells []atomic.Int32
	mem   []byte   // that the cells are in
	alive *os.File // the writing end of the pipe that tells that this process lives

	starting sync.WaitGroup
	stop     chan struct{}
	pid      int // of the process; 0: there is none. Written before starting is done
}

// startAfter is how long a run has to take until it is worth a process, which
// costs it a fifth of the time of the shortest run. Who kills stint before that
// ends only the leaders of the groups.
const startAfter = 10 * time.Millisecond

// Start makes the table, and in the background starts the process. program is
// the file to run with [Arg], run what [proc.Env] names the run. Where that fails
// nothing is watched, and failed is called once, from any goroutine. The process
// keeps held open, if it is not nil, until no job runs any more; so must the caller
// until Stop.
func Start(program, run string, held *os.File, failed func(error)) *Watcher {
	table, mem, err := newTable()
	if err != nil {
		failed(err)
		return nil
	}
	ended, alive, err := os.Pipe() // jobs do not inherit it: it closes when they are executed
	if err != nil {
		_ = table.Close()
		_ = unix.Munmap(mem)
		failed(err)
		return nil
	}
	w := &Watcher{cells: numbers(mem)[atCells:], mem: mem, alive: alive, stop: make(chan struct{})}
	w.starting.Go(func() {
		defer func() { _ = table.Close() }() // the process has its own,
		defer func() { _ = ended.Close() }() // and nothing is written here
		select {
		case <-time.After(startAfter):
		case <-w.stop:
			return
		}
		if err := w.launch(program, run, ended, table, held); err != nil {
			failed(err)
		}
	})
	return w
}

// Started blocks until the process watches, or cannot be started.
func (w *Watcher) Started() {
	if w != nil {
		w.starting.Wait()
	}
}

// Ended reports whether the process was there, and has ended. It must not be
// called together with Stop.
func (w *Watcher) Ended() bool {
	if w == nil || w.pid == 0 {
		return false
	}
	pid, err := syscall.Wait4(w.pid, nil, syscall.WNOHANG, nil)
	return pid == w.pid || err == syscall.ECHILD // which somebody else has taken note of
}

// The descriptors of the watching process, besides those that every program has.
const (
	fdEnded = 3 + iota
	fdTable
	fdHeld
)

// launch starts the process. It holds none of the standard streams: whoever
// reads what stint writes sees the end when stint ends. Its directory is one
// that nobody wants to unmount.
func (w *Watcher) launch(program, run string, ended, table, held *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }() // nothing is written to it
	if held == nil {
		held = null
	}
	files := []uintptr{null.Fd(), null.Fd(), null.Fd(), fdEnded: ended.Fd(), fdTable: table.Fd(), fdHeld: held.Fd()}
	pid, err := syscall.ForkExec(program, []string{"stint", Arg, run}, &syscall.ProcAttr{
		Dir: "/", Env: environment(),
		Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	w.pid = pid
	return nil
}

// environment is that of the process. Where stint is a job of another it is no
// part of that: it must outlive it for a moment.
func environment() []string {
	env := append([]string{"GOMAXPROCS=1"}, os.Environ()...) // the first one counts
	return slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, proc.EnvRun) })
}

// Stop ends the watching. No job runs any more, so that the process, which
// would find an empty table, can go at once: killed, because it may still be
// starting, and waited for, because not every machine has somebody who would
// do that for a process without a parent. It is called once.
func (w *Watcher) Stop() {
	if w == nil {
		return
	}
	close(w.stop)
	w.starting.Wait()
	if w.pid != 0 {
		_ = syscall.Kill(w.pid, syscall.SIGKILL)
		for {
			if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != syscall.EINTR {
				break
			}
		}
	}
	_ = w.alive.Close()
	_ = unix.Munmap(w.mem)
}
