//go:build linux

package arena_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A late call on a closed file does not act on another file that has got its descriptor
// number.
func TestB8_ArenaClosedDescriptorIsReused(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	if !b.Locks.Lock(5) {
		t.Fatal("a free lock was refused")
	}
	if err := a.File.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range 20 {
		other, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	if !a.Locks.Held(5) {
		t.Error("a lock that is held was free in another file")
	}
	if a.Locks.Lock(6) {
		t.Error("a lock was taken in another file")
	}
	if err := a.File.KeepOnExec(); err == nil {
		t.Error("another file was kept on exec")
	}
}

// If it is unknown whether a participant lives, as on a file system that fails, it is not
// considered dead. Here the kernel refuses a lock before the file's beginning.
func TestB8_ArenaUnknownIsHeld(t *testing.T) {
	if a := open(t, newPath(t)); !a.HeldBefore() {
		t.Error("a lock of which the kernel returns an error is free")
	}
}

// A descriptor that is kept on exec is closed with the file, also if it is descriptor 0.
func TestB8_ArenaKeepsDescriptorZero(t *testing.T) {
	a := open(t, newPath(t))
	stdin, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 100
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	unix.Close(0)
	err = a.File.KeepOnExec()
	_, kept := unix.FcntlInt(0, unix.F_GETFD, 0)
	closed := a.File.Close()
	_, left := unix.FcntlInt(0, unix.F_GETFD, 0)
	if err := unix.Dup3(stdin, 0, 0); err != nil {
		t.Fatal(err)
	}
	unix.Close(stdin)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil || kept != nil || closed != nil {
		t.Fatalf("kept: %v; the descriptor: %v; closed: %v", err, kept, closed)
	}
	if left == nil {
		t.Error("the descriptor is still open")
	}
}
