// Package disk makes durable what files alone cannot: their names.
package disk

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir returns when the names in a directory are on disk: those of files
// that were made, renamed or removed. A file that is on disk under a name that
// is not is lost in a power failure. Where a file system has no such promise to
// give, there is none, and no error.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing is written to it
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
