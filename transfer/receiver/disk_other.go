//go:build !linux

package receiver

import (
	"io"
	"io/fs"
	"os"
)

// allocate makes the file longer: nothing is reserved.
func allocate(f *os.File, offset, length int64) error {
	if length == 0 {
		return nil
	}
	return f.Truncate(offset + length)
}

// startFlush does nothing: the sync at the end writes the whole file.
func startFlush(*os.File, int64, int64) {}

// copyRange copies length bytes at source of a file to an offset of another.
func copyRange(to *os.File, offset int64, from *os.File, source, length int64) error {
	_, err := io.Copy(io.NewOffsetWriter(to, offset), io.NewSectionReader(from, source, length))
	return err
}

// rename gives a file another name unless a file has that name: then the error is
// [os.ErrExist].
func rename(from, to string) error { return linkAndRemove(from, to) }

// lock does nothing: only on Linux a second process is refused.
func lock(*os.File) error { return nil }

// bootID is unknown, so that data is verified at each Open.
func bootID() string { return "" }

// inode is not known.
func inode(fs.FileInfo) uint64 { return 0 }

// isFull cannot tell a full disk from other errors.
func isFull(error) bool { return false }

// isTooLarge cannot tell a size that the file system does not have from other errors.
func isTooLarge(error) bool { return false }
