//go:build linux

package main_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Servers with groups share the tasks of all groups, and share the leads. A task does not come
// after one of another group. A group is copied like any store.
func TestC11_ServersWithGroups(t *testing.T) {
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args := []string{"--store", url, "--group", "mail=news,letters"}
			first := serve(t, append(args, "--queue", "default")...)
			second := serve(t, append(args, "--queue", "news", "--queue", "letters")...)
			id := second.submit("echo one")
			news := first.submit("--queue", "news", "echo two")
			for _, at := range []*served{first, second} {
				if r := at.stint("wait", id, news); r.status != 0 {
					t.Fatalf("%+v", r)
				}
			}
			if r := first.stint("logs", news); r.stdout != "two\n" {
				t.Errorf("the log of a task of another group: %+v", r)
			}
			if r := second.stint("ls", "--json"); !strings.Contains(r.stdout, id) || !strings.Contains(r.stdout, news) {
				t.Errorf("the tasks of all groups: %+v", r)
			}
			r := first.stint("submit", "--queue", "letters", "--after", id, "--", "true")
			if r.status == 0 || !strings.Contains(r.stderr, "group default") || !strings.Contains(r.stderr, "group mail") {
				t.Errorf("a task after one of another group: %+v", r)
			}
			if r := first.stint("nodes"); !strings.Contains(r.stdout, "GROUPS") || !strings.Contains(r.stdout, "mail") {
				t.Errorf("%+v", r)
			}
			first.stop()
			late := second.submit("--queue", "letters", "echo three")
			if r := second.stint("wait", late); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			second.stop()
			alone := &served{t: t, dir: t.TempDir()}
			if r := alone.stint("store", "copy", "--from-group", "mail", url, "stint-data"); r.status != 0 ||
				!strings.HasPrefix(r.stdout, "2 tasks") {
				t.Fatalf("%+v", r)
			}
			alone.start()
			if task := alone.task(late); task.State != queue.Succeeded {
				t.Errorf("the task is %s in the copy", task.State)
			}
			alone.stop()
		})
	}
}

// Groups that cannot be right are refused before a database is asked.
func TestC11_GroupsThatServeRefuses(t *testing.T) {
	const store = "--store=redis://127.0.0.1:1"
	for _, c := range []struct{ args, says string }{
		{"--group a=b", "--group needs --store"},
		{store + " --group a=", "name its queues"},
		{store + " --group a", "name its queues"},
		{store + " --group A=b", "a name has up to 40"},
		{store + " --group default=b", "no other group has"},
		{store + " --group-store a=redis://:secret@127.0.0.1:1", "of a --group"},
		{store + " --group a=b --group-store a=secret", "of a --group"},
		{store + " --group a=b --group c=b", "queue b is in a and in c"},
		{store + " --group a=b --group a=c", "used twice"},
	} {
		s := &served{t: t, dir: t.TempDir()}
		r := s.stint(append([]string{"serve"}, strings.Fields(c.args)...)...)
		if r.status != 125 || !strings.Contains(r.stderr, c.says) || strings.Contains(r.stderr, "secret") {
			t.Errorf("%s: %+v; want %q", c.args, r, c.says)
		}
	}
}
