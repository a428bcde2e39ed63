package arena

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// File is the open file of an arena. Its locks belong to it: the kernel releases them when
// the last descriptor of it is closed.
type File struct {
	Identity Identity
	path     string
	file     *os.File
	kept     int // the descriptor that another program is to inherit, or none
}

// none is the value for no descriptor, as 0 is a valid one.
const none = -1

// unclosed are the files of the arenas that are open. What their locks protect may be in
// use longer than the arenas are referenced, as a slot that is held for as long as the
// process runs: so the garbage collector must not close them.
var unclosed sync.Map //nolint:gochecknoglobals // a process has one table of open files

// openFile opens a file to which no other user has access.
func openFile(path string, flags int) (*File, error) {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if flags&os.O_CREATE != 0 && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: make the directory %s first", err, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	f := &File{path: path, file: file, kept: none}
	var st unix.Stat_t
	switch err = f.control(func(fd int) error { return unix.Fstat(fd, &st) }); {
	case err != nil:
		err = &os.PathError{Op: "fstat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%s: %w: it is %s", path, errForeign, kindOf(st.Mode))
	default:
		err = checkOurs(path, &st, unix.S_IFREG)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	f.Identity = identityOf(&st)
	return f, nil
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity{uint64(st.Dev), st.Ino} //nolint:unconvert // Dev has another size elsewhere
}

// kindOf names a kind of file that has no bytes of its own.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a named pipe"
	default:
		return "a device"
	}
}

// control calls do with the descriptor, which cannot be closed meanwhile. If the file is
// closed it fails without a call, as the number may then be that of another file. It
// calls do again after EINTR.
func (f *File) control(do func(fd int) error) error {
	conn, err := f.file.SyscallConn()
	if err != nil {
		return err
	}
	closed := conn.Control(func(fd uintptr) {
		for again := true; again; again = errors.Is(err, unix.EINTR) {
			err = do(int(fd))
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
func (f *File) KeepOnExec() error {
	if f.kept != none {
		return nil
	}
	return f.control(func(fd int) error {
		kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, keptFrom)
		if err == unix.EINVAL || err == unix.EMFILE { // the limit of descriptors is below keptFrom
			kept, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 0)
		}
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		f.kept = kept // no os.File, which the garbage collector would close before exec
		return nil
	})
}

// Dup returns another descriptor of the open file.
func (f *File) Dup() (file *os.File, err error) {
	err = f.control(func(fd int) error {
		another, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		file = os.NewFile(uintptr(another), f.path)
		return nil
	})
	return file, err
}

// Close closes the file, and so releases all locks, unless there are other descriptors
// from [File.Dup]. The memory stays mapped.
func (f *File) Close() error {
	unclosed.Delete(f)
	if f.kept != none {
		_ = unix.Close(f.kept)
		f.kept = none
	}
	return f.file.Close()
}
