//go:build linux

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
