//go:build linux

package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// The log of a command is fetched from the server that has run it, whole, from its end, and
// while it is written. If that server is gone, the message names it; when it has been started
// again, it is found under its new name.
func TestC11_LogsOfOtherServers(t *testing.T) {
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			leader := serve(t, "--store", url, "--queue", "leader")
			worker := serve(t, "--store", url, "--queue", "worker")
			third := serve(t, "--store", url, "--queue", "third")
			servers := []*served{leader, worker, third}
			wantAddresses(t, third, servers...)
			for _, queue := range []string{"leader", "worker"} {
				id := third.submit("--queue", queue, "echo one; echo two >&2; echo three")
				for _, s := range servers {
					s.stint("wait", id).want(t, "", "", 0)
					s.stint("logs", id).want(t, "one\ntwo\nthree\n", "", 0)
					s.stint("logs", "--tail", "1", id).want(t, "three\n", "", 0)
				}
			}
			followLog(t, third, "worker")
			id := third.submit("--queue", "worker", "echo kept")
			third.stint("wait", id).want(t, "", "", 0)
			name := fmt.Sprint(":", worker.cmd.Process.Pid)
			worker.kill()
			for _, s := range []*served{leader, third} {
				r := s.stint("logs", id)
				r.want(t, "", name+", which ran it and does not answer: start \"stint serve\" on host ", 125)
				if !strings.Contains(r.stderr, "logs/"+id+".log") {
					t.Errorf("the message does not name the file: %s", r.stderr)
				}
			}
			worker.start("--store", url, "--queue", "worker")
			wantAddresses(t, third, servers...)
			for _, s := range servers {
				s.stint("logs", id).want(t, "kept\n", "", 0)
			}
			for _, s := range servers {
				s.stop()
			}
		})
	}
}

// followLog follows the log of a command of another server while the command runs.
func followLog(t *testing.T, at *served, queue string) {
	t.Helper()
	gate := fifo(t)
	id := at.submit("--queue", queue, "echo begun; read line < "+gate+"; echo $line")
	follow := at.command("logs", "-f", id)
	out := startLines(t, follow)
	if line := out.next(); line != "begun" {
		t.Errorf("the log that is followed begins with %q", line)
	}
	write(t, gate, "more\n")
	if line := out.next(); line != "more" {
		t.Errorf("the log that is followed goes on with %q", line)
	}
	if status := finish(t, follow); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
}

// wantAddresses waits until stint nodes lists each server with an address.
func wantAddresses(t *testing.T, at *served, servers ...*served) {
	t.Helper()
	var said string
	for range 600 { // a node enrolls some milliseconds after it answers its clients
		missing := 0
		said = at.stint("nodes", "--json").stdout
		for _, s := range servers {
			if !strings.Contains(said, fmt.Sprintf(":%d\",\"address\":\"127.0.0.1:", s.cmd.Process.Pid)) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
	t.Errorf("some of the servers have no address:\n%s", said)
}
