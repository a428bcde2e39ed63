package serve

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// fileOf identifies the file of a log. The number of the inode alone would not do: file
// systems use that of a removed file for the next one, and a log may be cut twice between
// two looks at it. On a file system that keeps no time of birth that cannot be told.
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
