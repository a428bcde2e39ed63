package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A lock is one on a byte of the file, from locksAt on, which is past its end:
// such locks need no bytes. It belongs to the open file and not to the process
// (Linux calls that an open file description lock), so that closing the file
// elsewhere in the process does not end it. The kernel ends it when the last
// process that has the open file is gone, in whatever way it went.
const (
	locksAt = 1 << 40
	making  = -1 // of whoever opens or removes the file
)

// used reports whether anybody else has a lock other than that of making, in any
// version of this package.
func (a *Arena) used() bool { return a.anyHeld(0, 0) }

// lockMaking waits for the lock of making, by asking again and again: a wait in
// the kernel has no end if the one who has it is stopped.
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
	return fmt.Errorf("%w: let it run or end it; `fuser -v %s` tells who has the file open", ErrStuck, a.path)
}

// flock is fcntl's lock of a byte.
func (a *Arena) flock(command int, kind int16, lock int) error {
	return a.control(func(fd int) error {
		return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind, Start: locksAt + int64(lock), Len: 1})
	})
}

// Lock takes a lock, unless another process has it. It reports true as well if
// this process has it already.
func (a *Arena) Lock(lock int) bool {
	return a.flock(unix.F_OFD_SETLK, unix.F_WRLCK, lock) == nil
}

// Unlock gives a lock back.
func (a *Arena) Unlock(lock int) { _ = a.flock(unix.F_OFD_SETLK, unix.F_UNLCK, lock) }

// Held reports whether another process has a lock.
func (a *Arena) Held(lock int) bool { return a.anyHeld(int64(lock), 1) }

// anyHeld reports whether another process has one of n locks, of which there are
// no others behind if n is 0. Where that cannot be known, as of a closed file or on a
// file system that fails, they are held: whoever is taken for dead while it lives
// loses what it has to another, and whoever is taken for living only keeps it longer.
func (a *Arena) anyHeld(first, n int64) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: locksAt + first, Len: n}
	err := a.control(func(fd int) error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l) })
	return err != nil || l.Type != unix.F_UNLCK
}
