package output

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openMemory opens a file in memory.
func openMemory() (*os.File, error) {
	fd, err := unix.MemfdCreate("stint output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "output"), nil
}

// punch frees the memory, or the disk space, of a part of a file.
func punch(f *os.File, offset, length int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
	return os.NewSyscallError("fallocate", err)
}

// openUnnamed opens a file on disk without a name.
func openUnnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
}

// openLinkable opens an unnamed file that link can give a name.
func openLinkable(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o666)
}

// link gives f the name path, which must not exist.
func link(f *os.File, path string) error {
	from := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: "output", New: path, Err: err}
	}
	return nil
}
