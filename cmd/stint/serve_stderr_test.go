//go:build linux

package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal ends a server whose standard error has a reader that does not read.
func TestC6_SignalWithoutAReaderOfMessages(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "-j2")
	s.cmd.Stderr = w
	start(t, s.cmd)
	messages := &lines{t: t, r: r}
	for !strings.HasSuffix(messages.next(), "; stop with Ctrl-C") {
	}
	if n, err := w.Write(make([]byte, size)); err != nil { // the pipe is full
		t.Fatal(n, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, s.cmd); status != 0 {
		t.Errorf("the server ends with %d", status)
	}
}
