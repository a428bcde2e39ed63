package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A lock is on a byte of the file at locksAt or behind it, past the end of the file:
// such locks need no bytes. It belongs to the open file and not to the process
// (Linux calls that an open file description lock), so closing another descriptor of
// the file in this process does not release it. The kernel releases it when the last
// process that has the open file has ended, in whatever way.
const (
	locksAt = 1 << 40
	making  = -1 // held while the file is opened or removed
)

// used reports whether a lock other than that of making is held, by any version of this
// package.
func (a *Arena) used() bool { return a.anyHeld(0, 0) }

// lockMaking polls for the lock of making: a wait in the kernel would not end if the
// holder is stopped.
func (a *Arena) lockMaking(ctx context.Context, patience time.Duration) error {
	began := Now()
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := a.flock(unix.F_OFD_SETLK, unix.F_WRLCK, making)
		if !errors.Is(err, unix.EAGAIN) {
			return os.NewSyscallError("fcntl", err)
		}
		if Now()-began > int64(patience) {
			return a.stuck()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), a.stuck())
		}
	}
}

func (a *Arena) stuck() error {
	return fmt.Errorf("%w: let it run or end it; `fuser -v %s` lists the processes that have it open", ErrStuck, a.path)
}

// flock locks or queries a byte with fcntl(2).
func (a *Arena) flock(command int, kind int16, lock int) error {
	return a.control(func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind, Start: locksAt + int64(lock), Len: 1})
	})
}

// Lock takes a lock and reports true, unless another process holds it. It also reports
// true if this process already holds it.
func (a *Arena) Lock(lock int) bool {
	return a.flock(unix.F_OFD_SETLK, unix.F_WRLCK, lock) == nil
}

// Unlock releases a lock.
func (a *Arena) Unlock(lock int) { _ = a.flock(unix.F_OFD_SETLK, unix.F_UNLCK, lock) }

// Held reports whether another process holds a lock.
func (a *Arena) Held(lock int) bool { return a.anyHeld(int64(lock), 1) }

// anyHeld reports whether another process holds one of n locks, or, if n is 0, any lock
// from there on. If that is unknown, because the file is closed or the file system fails,
// it reports true: a process that is wrongly considered dead loses what it holds to
// another, while one that is wrongly considered alive only keeps it longer.
func (a *Arena) anyHeld(first, n int64) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: locksAt + first, Len: n}
	err := a.control(func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l) })
	return err != nil || l.Type != unix.F_UNLCK
}
