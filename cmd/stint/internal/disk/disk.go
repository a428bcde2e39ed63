// Package disk makes the names of files durable.
package disk

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir returns when the names in a directory are on disk: those of files
// that were made, renamed or removed. A power failure loses a file whose content is
// on disk and whose name is not. On a file system that cannot sync a directory,
// SyncDir does nothing and returns no error.
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
