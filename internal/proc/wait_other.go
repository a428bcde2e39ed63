//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// sysProcAttr asks for a process group of its own.
func sysProcAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await is the part of Wait that differs between systems. Without a portable
// way of waiting that leaves the process to be reaped, its number is free while
// last is called: a signal to a group that is gone could reach another that got
// the number in that moment. Nor is there a word about processes that stop.
func (p *Process) await(last func(), _ func(syscall.Signal)) (syscall.WaitStatus, error) {
	ws, err := reap(p.pid)
	last()
	p.forget()
	return ws, err
}

// Ended reports whether the leader has ended, once whoever waits for it has
// noticed.
func (p *Process) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// Survived reports whether there are processes in the group whose leader has
// ended.
func (p *Process) Survived() bool { return syscall.Kill(-p.pid, 0) == nil }

// StopSelf stops this process until it is continued.
func StopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
