//go:build unix && !linux

package proc

import (
	"os"
	"syscall"
)

// sysProcAttr asks for a process group of its own.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitable returns at once: without a portable way of waiting that leaves the
// process to be reaped, a signal in the instant of the reaping itself can find
// the group gone, and only what was signalled before is sure to be reached.
func waitable(int) {}

// StopSelf stops this process until it is continued.
func StopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
