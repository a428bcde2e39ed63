// Package ownership refuses directories and files that other users of the machine
// own or may change. A program that reads its orders from such a directory would
// carry out the orders of another user.
//
// The rules are those of shared memory in package shm, but for reading: a directory
// that others may read is accepted, since a program may have chosen to show it.
// Access control lists are not looked at. On systems without users as Unix has them
// everything is accepted.
package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrForeign is wrapped by the errors of this package.
var ErrForeign = errors.New("controlled by others")

// writableByOthers are the bits by which group and others may change something.
const writableByOthers = 0o022

// Directory refuses a directory that does not belong to the user of this process, that
// other users may write to, or that has something in it that belongs to another user:
// that may date from a time when its mode let others write to it. A symbolic link to a
// directory is accepted if it belongs to this user or to root. The error names the path,
// the owner and the mode. Directory takes about 2 µs for each entry.
func Directory(path string) error {
	link, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if link.Mode()&fs.ModeSymlink != 0 {
		if uid, ok := ownerOf(link); ok && uid != 0 && uid != os.Geteuid() {
			return foreign(path, link, "choose another directory")
		}
	}
	info, err := os.Stat(path)
	if err == nil {
		err = checkDirectory(path, info) // before it is opened, which may not be permitted
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was read
	return checkOpened(path, dir)
}

// checkOpened checks the directory that is open, which may be another one than the path
// has named a moment before, and what is in it.
func checkOpened(path string, dir *os.File) error {
	info, err := dir.Stat()
	if err == nil {
		err = checkDirectory(path, info)
	}
	if err != nil {
		return err
	}
	entries, err := dir.Readdir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if uid, ok := ownerOf(entry); ok && uid != os.Geteuid() {
			return foreign(filepath.Join(path, entry.Name()), entry, "find out how it came there, and move it elsewhere")
		}
	}
	return nil
}

func checkDirectory(path string, info fs.FileInfo) error {
	uid, ok := ownerOf(info)
	switch {
	case !info.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	case !ok:
		return nil
	case uid != os.Geteuid():
		return foreign(path, info, "run it as that user, or choose another directory")
	case info.Mode().Perm()&writableByOthers != 0:
		return fmt.Errorf("%w: %s belongs to %s and has mode %#o, so that other users may write to it: "+
			"look at what is in it, and then run: chmod go-w %s", ErrForeign, path, userName(uid), info.Mode().Perm(), path)
	}
	return nil
}

// foreign is the error of something that belongs to another user.
func foreign(path string, info fs.FileInfo, remedy string) error {
	uid, _ := ownerOf(info)
	return fmt.Errorf("%w: %s belongs to %s and has mode %#o, and this process runs as %s: %s",
		ErrForeign, path, userName(uid), info.Mode().Perm(), userName(os.Geteuid()), remedy)
}

// Above reports which directory above a path lets another user rename what is at the
// path, and put something else in its place: one that belongs to another user than root,
// or that all may write to without the sticky bit. It returns nil if there is none.
func Above(path string) error {
	dir, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		uid, ok := ownerOf(info)
		switch {
		case !ok:
			return nil
		case uid != 0 && uid != os.Geteuid(), info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
			return foreign(dir, info, "its owner, and all who may write to it, can put another directory in the place of "+path)
		}
	}
	return nil
}

// File refuses an open file that is none, does not belong to the user of this process
// or to root, or that others may read or write: for secrets.
func File(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	uid, ok := ownerOf(info)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.Name())
	case !ok:
		return nil
	case uid != os.Geteuid() && uid != 0:
		return foreign(f.Name(), info, "use a file of your own")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s has mode %#o, so that others may use it: run: chmod 600 %s",
			ErrForeign, f.Name(), info.Mode().Perm(), f.Name())
	}
	return nil
}

// userName is a user for people: the number, and the name if it has one.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return "user " + number + " (" + u.Username + ")"
	}
	return "user " + number
}
