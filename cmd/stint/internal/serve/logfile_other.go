//go:build unix && !linux

package serve

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileOf identifies the file of a log by its inode. A log that is cut twice between two
// looks at it may have that of before.
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
