//go:build unix && !linux

package proc

import (
	"math"
	"os"
	"syscall"
)

// sysProcAttr requests a process group.
func sysProcAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await is the system-dependent part of Wait. There is no portable way to wait for a
// process without reaping it, so the PID is free while last is called: a signal to the
// group could reach another group that has got the ID in that moment. stopped is not
// called.
func (p *Process) await(last func(), _ func(syscall.Signal)) (syscall.WaitStatus, error) {
	ws, err := reap(p.pid)
	last()
	p.forget()
	return ws, err
}

// Ended reports whether Wait has noticed that the leader has ended.
func (p *Process) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// Survived reports whether there are processes of the group after its leader has ended.
func (p *Process) Survived() bool { return syscall.Kill(-p.pid, 0) == nil }

// StopSelf stops this process until it is continued.
func StopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// Room returns how many processes and threads this process may start, as far as that is known.
func Room() int { return math.MaxInt }
