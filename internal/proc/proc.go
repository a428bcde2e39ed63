//go:build unix

// Package proc starts and ends the processes of commands, each in a process
// group of its own. Other systems than Unix have no process groups: there the package has
// the exit statuses alone.
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

// Spec describes a process to start.
type Spec struct {
	Path  string   // the program's file, as [Look] finds it
	Args  []string // its arguments, its own name first
	Env   []string
	Dir   string      // directory to start in, that of this process if empty. A relative Path is relative to it
	Files [3]*os.File // standard input, output and error
	Extra []*os.File  // descriptors from 3 on
	// Watched says that another process ends this one if the calling program is killed. If
	// it is false, the kernel does, where it can, provided that the program ends no threads.
	Watched bool
	// GiveUp, if not nil, makes the next try the last once it is closed; see Start.
	GiveUp <-chan struct{}
	// Group, if not nil, holds the ID of the process group from the start
	// until the leader is about to be reaped; after that, or if the start fails, 0.
	Group *atomic.Int32
}

// Status is the result of a process.
type Status struct {
	Exit   int            // exit status; 0 if a signal ended the process
	Signal syscall.Signal // the signal that ended the process, or 0
}

// Process is a started process, the leader of its group. [Process.Signal] may
// be called from any goroutine, Wait only once.
type Process struct {
	pid   int
	group *atomic.Int32

	mu     sync.Mutex
	reaped bool // guarded by mu: from then on the PID may be reused
}

// startTries is how often Start tries while the system has no room for another process:
// about ten seconds in all.
const startTries = 100

// Start starts a process. If the system has no room for another process it retries every
// 100 ms, up to startTries times, because jobs that end make room. It does not search for
// the program.
func Start(spec *Spec) (*Process, error) {
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: spec.descriptors(), Sys: sysProcAttr(spec.Watched)}
	for try := 1; ; try++ {
		pid, err := syscall.ForkExec(spec.Path, spec.Args, attr)
		runtime.KeepAlive(spec) // attr has only the numbers of the descriptors
		if err == nil {
			p := &Process{pid: pid, group: spec.Group}
			p.publishGroup(pid)
			return p, nil
		}
		if !errors.Is(err, syscall.EAGAIN) || try == startTries {
			(&Process{group: spec.Group}).publishGroup(0)
			return nil, fmt.Errorf("start %s: %w", spec.Args[0], err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-spec.GiveUp:
			try = startTries - 1 // the next try is the last
		}
	}
}

// descriptors returns the descriptors of the files, which must stay open until the fork.
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

// Pid returns the ID of the process and of its group.
func (p *Process) Pid() int { return p.pid }

// Signal sends sig to every process of the group. It does nothing once the
// leader has been waited for, since the ID may then be that of another group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.pid, sig) // fails if the group has ended, which is fine
	}
}

// Wait blocks until the leader has ended. It then calls last, while the leader's PID is
// not reused yet, so that last can signal the remaining processes of the group. It calls
// stopped each time the leader is stopped, with the signal that stopped it. Either may be
// nil.
func (p *Process) Wait(last func(), stopped func(syscall.Signal)) Status {
	if last == nil {
		last = func() {}
	}
	ws, err := p.await(last, stopped)
	if err != nil {
		// The process was reaped elsewhere, which this program does not do: the status is
		// lost, so it counts as failed.
		return Status{Exit: ExitCannotRun}
	}
	return status(ws)
}

// forget is called before the leader is reaped: from then on Signal does nothing.
func (p *Process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	p.publishGroup(0)
}

// publishGroup stores the group's ID in Spec.Group.
func (p *Process) publishGroup(group int) {
	if p.group != nil {
		p.group.Store(int32(group))
	}
}

// reap waits for a process and returns its status.
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

// Look finds a program as a shell does: in the PATH, or by its path if the name
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

// LookStatus returns the exit status for an error of [Look] or [Start].
func LookStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, syscall.ENOENT) {
		return ExitNotFound
	}
	return ExitCannotRun
}
