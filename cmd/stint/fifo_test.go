//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unread is how many bytes wait in a pipe.
func unread(t *testing.T, f *os.File) int {
	t.Helper()
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// holdOpen lets every current and later reader of a fifo read a line.
func holdOpen(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for range 100 {
		if _, err := f.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// pty opens a terminal of 80 columns: the end that shows, and the end that
// programs have.
func pty(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	// TIOCGPTPEER opens the other end without its name, which may be in
	// another mount namespace.
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, screen.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	terminal = os.NewFile(fd, "terminal")
	t.Cleanup(func() { terminal.Close() })
	size := unix.Winsize{Row: 24, Col: 80}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, screen.Fd(), unix.TIOCSWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		t.Fatal(errno)
	}
	return screen, terminal
}

// killAt starts cmd, kills it with SIGKILL once a file in an existing directory
// has size bytes, and returns its status. A command that ends before stays
// unharmed.
func killAt(t *testing.T, cmd *exec.Cmd, path string, size int64) int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	watch := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_MODIFY|unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	var killer sync.WaitGroup
	killer.Go(func() {
		buf := make([]byte, 64<<10)
		for fileSize(t, path) < size {
			if _, err := watch.Read(buf); err != nil {
				return // closed: the command has ended
			}
		}
		_ = cmd.Process.Kill()
	})
	status := finish(t, cmd)
	watch.Close()
	killer.Wait()
	return status
}
