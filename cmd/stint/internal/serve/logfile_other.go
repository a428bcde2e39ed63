//go:build unix && !linux

package serve

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileOf returns the identity of a log's file: its inode. A log that is shortened twice
// between two checks may have its old inode again.
func fileOf(f fs.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%x", stat.Ino)
	}
	return ""
}
