package output

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file that never had a name.
func openUnnamed(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|os.O_APPEND|unix.O_TMPFILE, 0o600)
}

// openLinkable is openUnnamed for a file that link may give a name.
func openLinkable(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o666)
}

// link gives f the name path, which must be free.
func link(f *os.File, path string) error {
	from := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: "output", New: path, Err: err}
	}
	return nil
}
