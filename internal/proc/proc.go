// Package proc starts and ends the processes of commands, each in a process
// group of its own. Unix systems have those; elsewhere there is no such package.
//
// os/exec would cost a goroutine and a pipe for each stream and a context for
// each command. Here a command is one fork and one wait, with plain descriptors.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	Path  string   // the program's file, as [Look] finds it
	Args  []string // its arguments, its own name first
	Env   []string
	Dir   string      // that it starts in; empty is this process's. A Path that is relative is so to it
	Files [3]*os.File // standard input, output and error
	Extra []*os.File  // its descriptors from 3 on
	// Watched says that somebody ends the process should this one be killed. Else
	// the system does, where it can, if this program ends no threads.
	Watched bool
	// GiveUp, if not nil, ends the wait for room when it is closed.
	GiveUp <-chan struct{}
	// Group, if not nil, holds the number of the process's group from the start
	// until the leader is about to be reaped; then, or if the start fails, 0.
	Group *atomic.Int32
}

// Exit statuses that stand for what happened before a program ran, as shells,
// env(1) and timeout(1) use them.
const (
	ExitTimeout   = 124 // ended by its timeout
	ExitCannotRun = 126 // found, but not executable
	ExitNotFound  = 127 // no such program
)

// Status is how a process ended.
type Status struct {
	Exit   int            // its exit status; 0 if a signal ended it
	Signal syscall.Signal // that ended it, or 0
}

// Process is a started process, the leader of its group. [Process.Signal] may
// be called from any goroutine, Wait once.
type Process struct {
	pid   int
	group *atomic.Int32

	mu     sync.Mutex
	reaped bool // guarded by mu: from then on the pid may be somebody else's
}

// startTries bounds how often Start asks again for a process that the system
// has no room for: about ten seconds in all.
const startTries = 100

// Start starts a process. Where the system is short of processes it waits,
// because jobs that end make room. It does not search for the program.
func Start(spec *Spec) (*Process, error) {
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: spec.descriptors(), Sys: sysProcAttr(spec.Watched)}
	for try := 1; ; try++ {
		pid, err := syscall.ForkExec(spec.Path, spec.Args, attr)
		runtime.KeepAlive(spec) // attr has the files' numbers only
		if err == nil {
			p := &Process{pid: pid, group: spec.Group}
			p.tell(pid)
			return p, nil
		}
		if !errors.Is(err, syscall.EAGAIN) || try == startTries {
			(&Process{group: spec.Group}).tell(0)
			return nil, fmt.Errorf("start %s: %w", spec.Args[0], err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-spec.GiveUp:
			try = startTries - 1 // the last one
		}
	}
}

// descriptors are those of the files, which have to live until the fork.
func (s *Spec) descriptors() []uintptr {
	fds := make([]uintptr, 0, len(s.Files)+len(s.Extra))
	for _, f := range s.Files {
		fds = append(fds, f.Fd())
	}
	for _, f := range s.Extra {
		fds = append(fds, f.Fd())
	}
	return fds
}

// Pid is the process's id, and its group's.
func (p *Process) Pid() int { return p.pid }

// Signal sends sig to every process of the group. It does nothing once the
// leader has been waited for, since the number may then be another group's.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.pid, sig) // a group that is gone needs no signal
	}
}

// Wait blocks until the leader has ended. last is called then, while the
// leader's number is still its own: the moment for a signal to whoever is left
// of the group. stopped is called each time that the leader has been stopped,
// with the signal that did it. Either may be nil.
func (p *Process) Wait(last func(), stopped func(syscall.Signal)) Status {
	if last == nil {
		last = func() {}
	}
	ws, err := p.await(last, stopped)
	if err != nil {
		// Somebody else reaped it, which nobody here does: the status is lost, so
		// it counts as failed.
		return Status{Exit: ExitCannotRun}
	}
	return status(ws)
}

// forget is called when the number is about to be free: nobody gets a signal
// from here any more.
func (p *Process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	p.tell(0)
}

// tell writes the group's number where others look for it.
func (p *Process) tell(group int) {
	if p.group != nil {
		p.group.Store(int32(group))
	}
}

// reap takes the status of a process that has ended, or will.
func reap(pid int) (ws syscall.WaitStatus, err error) {
	for {
		_, err = syscall.Wait4(pid, &ws, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return ws, err
		}
	}
}

func status(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Signal: ws.Signal()}
	}
	return Status{Exit: ws.ExitStatus()}
}

// Look finds a program as a shell would: by the PATH, or as a path if the name
// has a slash.
func Look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("%s: %w", name, lookError(err))
	}
	return path, nil
}

func lookError(err error) error {
	if failed, ok := errors.AsType[*exec.Error](err); ok {
		return failed.Err
	}
	return err
}

// LookStatus is the exit status for an error of [Look] or [Start].
func LookStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return ExitNotFound
	}
	return ExitCannotRun
}
