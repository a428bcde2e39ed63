//go:build linux

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Tasks that wait can be edited; for a running or finished task, edit says why it cannot.
func TestC4_EditTasks(t *testing.T) {
	s := serve(t)
	pipe := fifo(t)
	ev := events(t, pipe)
	running := s.submit("echo > " + pipe + "; sleep 1000")
	ev.next()
	waits := s.submit("--after", running, "--key", "old", "--label", "a=1", "--label", "b=1", "--", "true")
	s.stint("edit", "--tier", "high", "--key", "new", "--label", "a=2", "--at", "2126-01-01T00:00:00Z",
		"--deadline", "2126-01-02T00:00:00Z", "--reason", "holidays", waits).want(t, "1 task edited\n", "", 0)
	task := s.task(waits)
	last := task.Steps[len(task.Steps)-1]
	got := fmt.Sprintln(task.State, task.Tier, task.Key, task.Labels, task.RunAt.Year(), task.Deadline.Day(),
		last.On, last.Detail)
	if want := "scheduled high new map[a:2 b:1] 2126 2 edit holidays\n"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	s.stint("edit", "--at", "now", "--deadline", "none", "--key", "", waits).want(t, "1 task edited\n", "", 0)
	task = s.task(waits)
	if task.State != queue.Held || task.Key != "" || !task.RunAt.IsZero() || !task.Deadline.IsZero() {
		t.Errorf("it is %s with %+v", task.State, task.Spec)
	}
	s.stint("edit", "--tier", "low", running).want(t, "0 tasks edited\n", "is running and cannot be edited: pause it", 1)
	s.stint("cancel", "--wait", running).want(t, "1 task cancelled\n", "", 0)
	s.stint("edit", "--tier", "low", running, waits).want(t, "1 task edited\n", "is cancelled: finished tasks", 1)
	s.stint("edit", "--at", "2126-01-02 00:00", "--deadline", "2126-01-01 00:00", waits).want(t,
		"0 tasks edited\n", "its deadline must be after its start", 1)
	for says, args := range map[string]string{
		"nothing to change": "edit " + waits, "give the ID": "edit --tier low",
		"both set the start": "edit --at now --delay 1 " + waits, "--at is empty": "edit --at= " + waits,
		"has passed": "edit --deadline 2020-01-01T06:00 " + waits,
	} {
		s.stint(strings.Fields(args)...).want(t, "", says, 125)
	}
	s.stop()
}
