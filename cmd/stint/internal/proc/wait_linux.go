package proc

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr asks for a process group of its own, and that the leader be killed
// should stint die without having ended its jobs (kill -9, out of memory):
// nobody would collect their output, and a resumed run starts them again. The
// rest of the group is for package watcher; this covers the moments before a
// group is in its table, and a system where it cannot run.
//
// The kernel sends that signal when the thread that forked ends. The runtime
// ends threads only where a goroutine exits that is locked to one, and no
// goroutine here is.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitable blocks until the process has ended and leaves it to be reaped.
func waitable(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// StopSelf stops this process until it is continued. The signal goes to the
// calling thread: sent to the process it might be taken by another, while this
// one goes on as if it had been continued already.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
