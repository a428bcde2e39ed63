package arena

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnExit calls ended once, from a goroutine, when the process with this PID has
// ended. After stop has returned, ended is not called any more. The PID is one of this
// process's PID namespace.
//
// It fails if the kernel has no pidfds (before Linux 5.3) or does not permit this process
// to open one, or if there is no such process.
func OnExit(pid int, ended func()) (stop func(), err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	_ = unix.SetNonblock(fd, true) // makes os wait for it with the poller, as for a socket
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if waitExit(conn) == nil {
			ended()
		}
	}()
	return func() { _ = file.Close(); <-done }, nil
}

func waitExit(conn syscall.RawConn) error {
	return conn.Read(func(fd uintptr) (ended bool) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0
	})
}
