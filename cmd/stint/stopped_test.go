//go:build linux

package main_test

import (
	"strings"
	"syscall"
	"testing"
)

// Commands give up on a server that is there and does not answer, and say what to do.
func TestC6_StoppedServer(t *testing.T) {
	s := serve(t)
	gate := fifo(t)
	id := s.submit("read line < " + gate)
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"ls"}, {"submit", "--", "true"}, {"wait", id}, {"logs", "-f", id}, {"show", id}, {"cancel", id},
	} {
		cmd := s.command(args...)
		cmd.Env = append(cmd.Env, "STINT_CALL_TIMEOUT=100ms")
		r := runCmd(t, cmd, "")
		if r.status != 125 || !strings.Contains(r.stderr, "has said nothing for 100ms") ||
			!strings.Contains(r.stderr, "kill -CONT") || !strings.Contains(r.stderr, "STINT_CALL_TIMEOUT=2m waits longer") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for _, name := range []string{id, id[len(id)-8:]} { // a short ID is looked up
		s.stint("wait", "--timeout", "100ms", name).want(t, "", "--timeout has expired", 124)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	other := s.submit("--delay", "1h", "--", "true") // the first may be cancelled now: the call has come through
	waiting := s.command("wait", other)
	waiting.Env = append(waiting.Env, "STINT_CALL_TIMEOUT=100ms")
	stderr, err := waiting.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, waiting)
	s.stint("stats")
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	said := lines{t: t, r: stderr}
	if line := said.next(); !strings.Contains(line, "has said nothing for 100ms") {
		t.Errorf("wait says %q", line)
	}
	if status := finish(t, waiting); status != 125 {
		t.Errorf("wait ends with %d", status)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.kill()
}
