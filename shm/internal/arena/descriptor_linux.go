package arena

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// none is no descriptor: 0 is one.
const none = -1

// control calls f with the descriptor, which cannot be closed meanwhile. It fails
// without a call if the file is closed: the number may be that of another file by
// then. An f that a signal has interrupted is called again.
func (a *Arena) control(f func(fd int) error) error {
	conn, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	closed := conn.Control(func(fd uintptr) {
		for again := true; again; again = errors.Is(err, unix.EINTR) {
			err = f(int(fd))
		}
	})
	if closed != nil {
		return closed
	}
	return err
}

// keptFrom is the least descriptor that another program inherits. Scripts have the
// small ones for themselves, as in exec 3>file, and some take 200.
const keptFrom = 300

// KeepOnExec lets the program that this process turns into inherit the open file,
// and the locks with it. It must not be called twice at a time, or with Close.
func (a *Arena) KeepOnExec() error {
	if a.kept != none {
		return nil
	}
	return a.control(func(fd int) error {
		kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, keptFrom)
		if err == unix.EINVAL || err == unix.EMFILE { // there are no such descriptors
			kept, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 0)
		}
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		a.kept = kept // and no file, which would be closed as garbage before the process turns into the program
		return nil
	})
}

// File returns another descriptor of the open file, which has the locks.
func (a *Arena) File() (file *os.File, err error) {
	err = a.control(func(fd int) error {
		another, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		file = os.NewFile(uintptr(another), a.path)
		return nil
	})
	return file, err
}

// Close closes the file, and so gives back all locks, unless [Arena.File] has given
// descriptors of it to others. The memory stays mapped.
func (a *Arena) Close() error {
	unclosed.Delete(a)
	if a.kept != none {
		_ = unix.Close(a.kept)
		a.kept = none
	}
	return a.file.Close()
}
