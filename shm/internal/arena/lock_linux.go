package arena

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A lock is one on a byte of the file, from locksAt on, which is past its end:
// such locks need no bytes. It belongs to the open file and not to the process
// (Linux calls that an open file description lock), so that closing the file
// elsewhere in the process does not end it. The kernel ends it when the last
// process that has the open file is gone, in whatever way it went.
const (
	locksAt    = 1 << 40
	lockMaking = -1
)

// flock is fcntl's lock of a byte.
func (a *Arena) flock(command int, kind int16, lock int) error {
	for {
		err := unix.FcntlFlock(uintptr(a.fd), command, &unix.Flock_t{Type: kind, Start: locksAt + int64(lock), Len: 1})
		if err != unix.EINTR {
			return err
		}
	}
}

// Lock takes a lock, unless another process has it. It reports true as well if
// this process has it already.
func (a *Arena) Lock(lock int) bool {
	return a.flock(unix.F_OFD_SETLK, unix.F_WRLCK, lock) == nil
}

// Unlock gives a lock back.
func (a *Arena) Unlock(lock int) { _ = a.flock(unix.F_OFD_SETLK, unix.F_UNLCK, lock) }

// Held reports whether another process has a lock.
func (a *Arena) Held(lock int) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: locksAt + int64(lock), Len: 1}
	err := unix.FcntlFlock(uintptr(a.fd), unix.F_OFD_GETLK, &l)
	if err != nil && err != unix.EBADF {
		panic(fmt.Sprintf("arena: lock %d: %v", lock, err))
	}
	return err != nil || l.Type != unix.F_UNLCK
}
