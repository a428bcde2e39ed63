package serve

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// fileOf returns the identity of a log's file: its inode and its birth time. The inode
// alone would not do: file systems reuse the inode of a removed file, and a log may be
// shortened twice between two checks. If the file system does not store birth times, such
// a change goes unnoticed.
func fileOf(f fs.File) string {
	file, ok := f.(*os.File)
	if !ok {
		return ""
	}
	var info unix.Statx_t
	err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &info)
	if err != nil {
		return ""
	}
	if info.Mask&unix.STATX_BTIME == 0 {
		info.Btime = unix.StatxTimestamp{}
	}
	return fmt.Sprintf("%x-%x.%x", info.Ino, info.Btime.Sec, info.Btime.Nsec)
}
