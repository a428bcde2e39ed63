package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Locks are the locks of a file, by number, on behalf of one open file. No two open files hold
// the same lock, also not two of one process.
type Locks struct{ file *File }

// A lock is on a byte of the file at locksAt or behind it, past the end of the file:
// such locks need no bytes. It belongs to the open file and not to the process
// (Linux calls that an open file description lock), so closing another descriptor of
// the file in this process does not release it. The kernel releases it when the last
// process that has the open file has ended, in whatever way.
const (
	locksAt = 1 << 40
	making  = -1 // held while the file is opened or removed
)

// Lock takes a lock and reports true, unless another open file holds it. It also reports
// true if this open file already holds it.
func (l Locks) Lock(lock int) bool {
	return l.flock(unix.F_OFD_SETLK, unix.F_WRLCK, lock) == nil
}

// Unlock releases a lock.
func (l Locks) Unlock(lock int) { _ = l.flock(unix.F_OFD_SETLK, unix.F_UNLCK, lock) }

// Held reports whether another open file holds a lock.
func (l Locks) Held(lock int) bool { return l.anyHeld(int64(lock), 1) }

// flock locks or queries a byte with fcntl(2).
func (l Locks) flock(command int, kind int16, lock int) error {
	return l.file.control(func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind, Start: locksAt + int64(lock), Len: 1})
	})
}

// anyHeld reports whether another open file holds one of n locks, or, if n is 0, any lock
// from there on. If that is unknown, because the file is closed or the file system fails,
// it reports true: a process that is wrongly considered dead loses what it holds to
// another, while one that is wrongly considered alive only keeps it longer.
func (l Locks) anyHeld(first, n int64) bool {
	query := unix.Flock_t{Type: unix.F_WRLCK, Start: locksAt + first, Len: n}
	err := l.file.control(func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &query) })
	return err != nil || query.Type != unix.F_UNLCK
}

// lockMaking polls for the lock of making: a wait in the kernel would not end if the
// holder is stopped.
func (l Locks) lockMaking(ctx context.Context, patience time.Duration) error {
	began := Now()
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := l.flock(unix.F_OFD_SETLK, unix.F_WRLCK, making)
		if !errors.Is(err, unix.EAGAIN) {
			return os.NewSyscallError("fcntl", err)
		}
		if Now()-began > int64(patience) {
			return l.stuck()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), l.stuck())
		}
	}
}

func (l Locks) stuck() error {
	path := l.file.path
	return fmt.Errorf("%w: let it run or end it; `fuser -v %s` lists the processes that have it open", ErrStuck, path)
}
