package watcher

import (
	"errors"
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

// Program is the file of this process, even if its name has changed.
const Program = "/proc/self/exe"

// Watcher is stint's side: the table, and the process that reads it. A nil
// Watcher watches nothing. Cell may be called from any goroutine until Stop.
type Watcher struct {
	cells []atomic.Int32
	mem   []byte   // the memory of the cells
	alive *os.File // the writing end of the pipe, which the kernel closes when this process ends

	starting sync.WaitGroup
	stop     chan struct{}
	pid      int // of the watching process; 0: there is none. Written before starting is done
}

// startAfter is how long a run lasts before it starts a watching process, which
// costs a fifth of the time of the shortest run. If stint is killed earlier, the
// kernel kills only the leaders of the groups.
const startAfter = 10 * time.Millisecond

// errNoMain is the error of a watching process that would watch itself. Without it, a program
// whose main does not call Main would start itself without end.
var errNoMain = errors.New("this process is to watch others: main must call watcher.Main first")

// Start makes the table, and starts the watching process in the background. program is
// the file to run with [Arg], run is the name of the run as in [proc.Env]. If that fails
// nothing is watched, and failed is called once, from any goroutine. The process
// keeps held open, if it is not nil, until no job runs any more; the caller must do so
// until Stop.
func Start(program, run string, held *os.File, failed func(error)) *Watcher {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		failed(errNoMain)
		return nil
	}
	table, mem, err := newTable()
	if err != nil {
		failed(err)
		return nil
	}
	ended, alive, err := os.Pipe() // both are closed on exec, so jobs do not inherit them
	if err != nil {
		_ = table.Close()
		_ = unix.Munmap(mem)
		failed(err)
		return nil
	}
	w := &Watcher{cells: numbers(mem)[atCells:], mem: mem, alive: alive, stop: make(chan struct{})}
	w.starting.Go(func() {
		defer func() { _ = table.Close() }() // the process has inherited it,
		defer func() { _ = ended.Close() }() // and this one does not read it
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

// Started blocks until the watching process has been started, or cannot be started.
func (w *Watcher) Started() {
	if w != nil {
		w.starting.Wait()
	}
}

// Ended reports whether the watching process was started and has ended. It must not be
// called concurrently with Stop.
func (w *Watcher) Ended() bool {
	if w == nil || w.pid == 0 {
		return false
	}
	pid, err := syscall.Wait4(w.pid, nil, syscall.WNOHANG, nil)
	return pid == w.pid || err == syscall.ECHILD // ECHILD: the process was reaped elsewhere
}

// The descriptors of the watching process, besides the standard streams.
const (
	fdEnded = 3 + iota
	fdTable
	fdHeld
)

// launch starts the watching process. It does not inherit the standard streams, so that a
// reader of stint's output sees the end when stint ends. Its directory is the root, which
// does not keep a file system from being unmounted.
func (w *Watcher) launch(program, run string, ended, table, held *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }() // it was not written
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

// environment returns the environment of the watching process. If stint is itself a job
// of another stint, the process is not part of that job, as it must outlive stint for a
// moment.
func environment() []string {
	env := append([]string{"GOMAXPROCS=1"}, os.Environ()...) // the first of several entries applies
	return slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, proc.EnvRun) })
}

// Stop ends the watching. It must be called once, when no job runs any more. The process
// would find an empty table, so Stop kills it, because it may still be starting, and
// waits for it, because not every machine has an init process that reaps orphans.
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
