package receiver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// allocate reserves the bytes from offset on, and makes the file longer if need be. File
// systems that cannot reserve make the file longer only.
func allocate(f *os.File, offset, length int64) error {
	if length == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, offset, length)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(offset + length)
	}
	return err
}

// startFlush lets the disk begin to write a range of a file, as sync_file_range(2) says. It
// blocks while the disk has more to write than its queue holds. The sync that comes later
// returns the errors of the writing.
func startFlush(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

// copyRange copies length bytes at source of a file to an offset of another, by reference if
// the file system can.
func copyRange(to *os.File, offset int64, from *os.File, source, length int64) error {
	for end := offset + length; offset < end; {
		n, err := unix.CopyFileRange(int(from.Fd()), &source, int(to.Fd()), &offset, int(end-offset), 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS),
			errors.Is(err, unix.EINVAL):
			_, err = io.Copy(io.NewOffsetWriter(to, offset), io.NewSectionReader(from, source, end-offset))
			return err
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// rename gives a file another name unless a file has that name: then the error is
// [os.ErrExist].
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkAndRemove(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// lock makes the open file the only one that is locked, until it is closed.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("another process receives uploads into this directory (it has locked %s)", f.Name())
	}
	return err
}

// bootID names the time since the machine started, in which written pages are not lost.
//
//nolint:gochecknoglobals // a constant of the machine
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// inode returns the number of a file in its file system, or 0 if it is not known.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// isFull reports whether an error says that the disk or the user's quota is full.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// isTooLarge reports whether an error says that a file system has no files of a size.
func isTooLarge(err error) bool { return errors.Is(err, unix.EFBIG) }
