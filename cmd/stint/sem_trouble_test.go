//go:build linux

package main_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Who opens the slots is stopped meanwhile. Whoever does not want to wait for long is
// told of that, and what can be done.
func TestB8_SemOfStoppedOpener(t *testing.T) {
	path := slotsFile(t)
	hold(t, path).release()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const making = 1<<40 - 1 // the byte that whoever opens them has locked
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: making, Len: 1}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--wait=20ms", "--wait=0", "--try"} {
		stint(t, "", "sem", "--name", path, flag, "echo", "ran").
			want(t, "", "is opening the region does not go on: let it run or end it; `fuser -v "+path+"`", 75)
	}
}
