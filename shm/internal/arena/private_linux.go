package arena

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// MakePrivate returns the directory of this user's files. It makes the directory if there
// is none.
func MakePrivate() (string, error) {
	if err := makePrivate(privateDir()); err != nil {
		return "", err
	}
	return Private()
}

func makePrivate(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, os.ErrExist):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is no %s; give the path of a file elsewhere", err, filepath.Dir(dir))
	default:
		return err
	}
}

// Private returns the directory of this user's files.
func Private() (string, error) {
	dir := privateDir()
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	return dir, checkOurs(dir, &st, unix.S_IFDIR)
}

func privateDir() string { return filepath.Join("/dev/shm", "stint-"+strconv.Itoa(os.Geteuid())) }

// checkOurs returns an error if a file is of another kind, or accessible to other users.
func checkOurs(path string, st *unix.Stat_t, kind uint32) error {
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return fmt.Errorf("%w: %s has mode %o", ErrNotOurs, path, st.Mode)
	case st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf("%w: %s belongs to user %d", ErrNotOurs, path, st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%w: %s has mode %#o, want no more than %#o", ErrNotOurs, path, st.Mode&0o777, st.Mode&0o700)
	}
	return nil
}
