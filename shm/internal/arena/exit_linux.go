package arena

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OnExit calls ended once, from a goroutine, when the process with that number has
// ended, unless stop is called first: then it is not called any more when stop has
// returned. The number is one of this process's namespace.
//
// It fails where the kernel has no descriptors of processes (before Linux 5.3), does
// not let this process have one, or knows no such process.
func OnExit(pid int, ended func()) (stop func(), err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	_ = unix.SetNonblock(fd, true) // or else os does not wait for it as it does for a socket
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
