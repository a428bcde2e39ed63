//go:build linux

package main_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// A directory is copied to Redis and back. The tasks go on there, and the store before
// refuses and names the next one.
func TestC11_StoreCopy(t *testing.T) {
	t.Parallel()
	url := redis(t)

	s := serve(t)
	done := s.submit("echo done")
	if r := s.stint("wait", done); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	later := s.submit("--delay", "1h", "echo later")
	if r := s.stint("store", "copy", "stint-data", url); r.status != 125 || !strings.Contains(r.stderr, "has it open") {
		t.Errorf("a copy while a server has the store: %+v", r)
	}
	s.stop()
	if r := s.stint("store", "copy", "nowhere", url); r.status != 125 || !strings.Contains(r.stderr, "there is no store") {
		t.Errorf("a copy of nothing: %+v", r)
	}
	r := s.stint("store", "copy", "stint-data", url)
	if r.status != 0 || !strings.HasPrefix(r.stdout, "2 tasks are in "+url) {
		t.Fatalf("%+v", r)
	}
	r = s.stint("serve")
	if r.status != 125 || !strings.Contains(r.stderr, "its tasks have been moved to "+url) {
		t.Errorf("a server on the store before: %+v", r)
	}
	s.start("--store", url)
	if r := s.stint("edit", later, "--delay", "0s"); r.status != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.stint("wait", later); r.status != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.stint("logs", done); r.stdout != "done\n" {
		t.Errorf("%+v", r)
	}
	s.stop()

	back := serve(t, "--store", url)
	back.stop()
	cmd := back.command("store", "copy", "env:OLD", "stint-data")
	cmd.Env = append(cmd.Env, "OLD="+url)
	if r := runCmd(t, cmd, ""); r.status != 0 || !strings.HasPrefix(r.stdout, "2 tasks are in ") {
		t.Fatalf("%+v", r)
	}
	back.start()
	for _, id := range []string{done, later} {
		if task := back.task(id); task.State != queue.Succeeded {
			t.Errorf("task %s is %s", id, task.State)
		}
	}
}
