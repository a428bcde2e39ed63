package arena

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// none is the value for no descriptor, as 0 is a valid one.
const none = -1

// control calls f with the descriptor, which cannot be closed meanwhile. If the file is
// closed it fails without a call, as the number may then be that of another file. It
// calls f again after EINTR.
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

// keptFrom is the lowest descriptor to be inherited by another program. Scripts use the
// low ones for themselves, as in exec 3>file, and some use 200.
const keptFrom = 300

// KeepOnExec makes the program that this process executes inherit the open file,
// and the locks with it. It must not be called concurrently with itself or with Close.
func (a *Arena) KeepOnExec() error {
	if a.kept != none {
		return nil
	}
	return a.control(func(fd int) error {
		kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, keptFrom)
		if err == unix.EINVAL || err == unix.EMFILE { // the limit of descriptors is below keptFrom
			kept, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 0)
		}
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		a.kept = kept // no os.File, which the garbage collector would close before exec
		return nil
	})
}

// File returns another descriptor of the open file, to which the locks belong.
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

// Close closes the file, and so releases all locks, unless there are other descriptors
// from [Arena.File]. The memory stays mapped.
func (a *Arena) Close() error {
	unclosed.Delete(a)
	if a.kept != none {
		_ = unix.Close(a.kept)
		a.kept = none
	}
	return a.file.Close()
}
