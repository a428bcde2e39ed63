//go:build linux

package main_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// The log of a command that writes more than is kept has the error at its end, when it is
// read and when it is followed.
func TestC4_LogKeepsTheEnd(t *testing.T) {
	s := serve(t, "--output", "2000")
	gate := fifo(t)
	id := s.submit("--retries", "0", "--",
		"sh", "-c", "read x < "+gate+"; seq 1 100000; echo the error >&2; exit 3")
	follow := s.command("logs", "-f", id)
	out := startLines(t, follow)
	write(t, gate, "go\n")
	if line := out.next(); line != "1" {
		t.Errorf("the log that is followed begins with %q", line)
	}
	var followed strings.Builder
	for line := "1"; line != "the error"; line = out.next() {
		followed.WriteString(line + "\n")
	}
	finish(t, follow)
	s.stint("wait", id)
	r := s.stint("logs", id)
	if r.status != 0 || r.stdout != followed.String()+"the error\n" {
		t.Errorf("the log is %q, and followed it was %q", r.stdout, followed.String())
	}
	begins, ends, ok := strings.Cut(r.stdout, " bytes are missing here]\n")
	if !ok || !strings.HasPrefix(begins, "1\n2\n3\n") || !strings.HasSuffix(ends, "\n99999\n100000\nthe error\n") ||
		len(r.stdout) > 2200 {
		t.Errorf("the log has %d bytes: %q", len(r.stdout), r.stdout)
	}
	if !strings.Contains(r.stderr, "bytes in the middle") {
		t.Errorf("logs says %q", r.stderr)
	}
	s.stop()
}

// The end of what a command has written is not lost with a server that is killed.
func TestC6_LogEndOfAKilledServer(t *testing.T) {
	s := serve(t, "--output", "2000")
	id := s.submit("seq 1 100000; echo last words; sleep 1000")
	tail := filepath.Join(s.dir, "stint-data", "logs", id+".log.tail")
	for text := ""; !strings.HasSuffix(text, "last words\n"); { // it is kept a second later
		b, err := os.ReadFile(tail)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		text = string(b)
		s.stint("ls")
	}
	s.kill()
	s.start("--queue", "none")
	r := s.stint("logs", id)
	if !strings.HasSuffix(r.stdout, "\n100000\nlast words\n") || strings.Count(r.stdout, "bytes are missing here") != 1 {
		t.Errorf("the log is %q", r.stdout)
	}
	if _, err := os.Stat(tail); !os.IsNotExist(err) {
		t.Errorf("the tail is still there: %v", err)
	}
	s.stop()
}

// A reader of a log that pauses for so long that the server ends the answer gets the rest in another one.
func TestC4_LogInSeveralAnswers(t *testing.T) {
	s := serve(t)
	id := s.submit("seq 1 1000")
	s.stint("wait", id)
	at := &url.URL{Scheme: "http", Host: "stint"}
	socket := filepath.Join(s.dir, "stint-data", "stint.sock")
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	proxy.ErrorLog, proxy.FlushInterval = log.New(io.Discard, "", 0), -1
	cuts := 0
	proxy.ModifyResponse = func(r *http.Response) error {
		if cuts < 3 && r.Header.Get("Content-Type") == "application/octet-stream" {
			cuts++
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 1000), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}
		return nil
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "stint.sock"))
	if err != nil {
		t.Fatal(err)
	}
	front := &httptest.Server{Listener: l, Config: &http.Server{Handler: proxy}} //nolint:gosec // the client is ours
	front.Start()
	defer front.Close()
	whole, inPieces := s.stint("logs", id), s.stint("logs", "--server", dir, id)
	if inPieces.status != 0 || inPieces.stdout != whole.stdout || len(whole.stdout) < 3000 || cuts != 3 {
		t.Errorf("after %d cuts, it prints %d bytes of %d, exit status %d: %s",
			cuts, len(inPieces.stdout), len(whole.stdout), inPieces.status, inPieces.stderr)
	}
	s.stop()
}
