//go:build unix

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// holder returns the process that has a lock on a file; 0 if that is unknown. The process
// that holds the lock must not call it, because closing the file releases the lock.
func holder(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	err = errors.Join(syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock), f.Close())
	if err != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}
