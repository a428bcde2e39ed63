//go:build linux

package arena_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/shm/internal/arena"
)

// Error messages say what is wrong with the path, and what to do.
func TestB8_ArenaSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(path string) error { _, err := tryOpen(path, layout); return err }
	look := func(path string) error { _, err := arena.Look(path); return err }
	for _, c := range []struct {
		name string
		err  error
		is   error
		says string
	}{
		{"open a pipe", try(pipe), arena.ErrMismatch, "it is a named pipe"},
		{"look at a pipe", look(pipe), arena.ErrMismatch, "it is a named pipe"},
		{"remove a pipe", arena.Remove(pipe, patience), arena.ErrMismatch, "it is a named pipe"},
		{"look at a directory", look(dir), arena.ErrMismatch, "it is a directory"},
		{"look at a device", look("/dev/null"), arena.ErrMismatch, "it is a device"},
		{
			"open without a directory", try(filepath.Join(dir, "none", "region")), os.ErrNotExist,
			"make the directory " + filepath.Join(dir, "none") + " first",
		},
		{
			"without /dev/shm", arena.MakePrivateAt(filepath.Join(dir, "none", "stint-0")), os.ErrNotExist,
			"there is no " + filepath.Join(dir, "none") + "; give the path of a file",
		},
		{"no room", arena.NoRoom("/disk/region", syscall.ENOSPC), syscall.ENOSPC, "make room in /disk"},
		{
			"no way to set room aside", arena.NoRoom("/disk/region", syscall.EOPNOTSUPP), syscall.EOPNOTSUPP,
			"the file system of /disk cannot set room aside; take a path on a tmpfs",
		},
	} {
		if !errors.Is(c.err, c.is) || errors.Is(c.err, arena.ErrNotOurs) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %q", c.name, c.err, c.is, c.says)
		}
	}
	if err := arena.MakePrivateAt(dir); err != nil {
		t.Errorf("an existing directory: %v", err)
	}
	if _, err := os.Lstat(pipe); err != nil {
		t.Errorf("the pipe: %v", err)
	}
}
