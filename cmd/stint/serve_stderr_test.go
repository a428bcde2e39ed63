//go:build linux

package main_test

import (
	"io"
	"net"
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

// A second signal ends a server at once that waits for a client which does not end its call.
func TestC5_SecondSignalDuringACall(t *testing.T) {
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "-j2")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, s.cmd)
	said := lines{t: t, r: stderr}
	for !strings.HasSuffix(said.next(), "; stop with Ctrl-C") {
	}
	t.Chdir(s.dir) // the path of the socket may be too long otherwise
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", "stint-data/stint.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const part = "POST /v2/submit HTTP/1.1\r\nHost: s\r\nStint-Client: test\r\nContent-Type: application/json\r\n" +
		"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"
	if _, err := io.WriteString(conn, part); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err != nil { // 100 Continue: the call has begun
		t.Fatal(n, err)
	}
	for range 2 {
		if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for said.next() == "" {
		}
	}
	if status := finish(t, s.cmd); status != 130 {
		t.Errorf("the server ends with %d", status)
	}
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("the client is answered with %d bytes: the server has waited for it", n)
	}
}
