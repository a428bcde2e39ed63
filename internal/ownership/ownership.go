// Package ownership refuses directories and files that other users of the machine
// own or can change. A program that reads its orders from such a directory would
// carry out the orders of another user.
//
// The rules are those of package shm for its files, except that a directory that
// other users can read is accepted, since a program may want to publish it.
// Access control lists are not checked. On systems without Unix users all paths
// are accepted.
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

// writableByOthers are the mode bits that permit group and others to write.
const writableByOthers = 0o022

// Directory refuses a directory that does not belong to the user of this process, that
// other users can write to, or that has an entry that belongs to another user:
// the entry may date from a time when the mode let others write. A symbolic link to a
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
		err = checkDirectory(path, info) // before opening it, which may not be permitted
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only read
	return checkOpened(path, dir)
}

// checkOpened checks the open directory and its entries. It may be another directory than
// the one that the path named a moment before.
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

// foreign returns the error of a file that belongs to another user.
func foreign(path string, info fs.FileInfo, remedy string) error {
	uid, _ := ownerOf(info)
	return fmt.Errorf("%w: %s belongs to %s and has mode %#o, and this process runs as %s: %s",
		ErrForeign, path, userName(uid), info.Mode().Perm(), userName(os.Geteuid()), remedy)
}

// Above returns the error of a directory above path that lets another user rename or
// replace what is at path: one that belongs to another user than root, or that all users
// can write to and that has no sticky bit. It returns nil if there is none.
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
			return foreign(dir, info, "its owner, and all users that can write to it, can replace "+path)
		}
	}
	return nil
}

// File refuses an open file that is not a regular file, does not belong to the user of
// this process or to root, or that others can read or write. It is for secrets.
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

// userName returns a user ID and, if known, the user's name for messages.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return "user " + number + " (" + u.Username + ")"
	}
	return "user " + number
}
