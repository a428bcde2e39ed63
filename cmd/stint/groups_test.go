//go:build linux

package main_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/dbserver"
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

// While the database of a group is away, lists have what the other groups have, name the group, and say
// why it does not answer.
func TestC11_ListsWithoutAGroup(t *testing.T) {
	t.Parallel()
	all := redis(t)
	mail, err := dbserver.RunRedis(t.TempDir(), dbserver.Always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mail.Stop)
	s := serve(t, "--store", all, "--group", "mail=news", "--group-store", "mail="+mail.DSN,
		"--queue", "default", "--queue", "news")
	id, news := s.submit("true"), s.submit("--queue", "news", "true")
	for _, name := range []string{"default", "news"} {
		if r := s.stint("limit", "set", "--queue", name, "--running", "7"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
		if r := s.stint("schedule", "add", "of-"+name, "@yearly", "--queue", name, "--", "true"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if r := s.stint("wait", id, news); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	mail.Stop()
	for { // until the lease of the leader of the group has ended
		if r := s.stint("ls", "--json"); r.status != 0 {
			break
		}
	}
	for _, list := range []struct{ args, has, lacks, missing string }{
		{"ls --json", id, news, "tasks"},
		{"schedule ls", "of-default", "of-news", "schedules"},
		{"limit", "queue default", "queue news", "limits"},
	} {
		r := s.stint(strings.Fields(list.args)...)
		if r.status != 125 || !strings.Contains(r.stdout, list.has) || strings.Contains(r.stdout, list.lacks) ||
			!strings.HasPrefix(r.stderr, "stint: group mail does not answer: ") || !strings.Contains(r.stderr, "refused") ||
			!strings.HasSuffix(r.stderr, "; its "+list.missing+" are missing\n") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", list.args, r)
		}
	}
	if r := s.stint("show", id); r.status != 0 {
		t.Errorf("a task by its ID: %+v", r)
	}
	if r := s.stint("show", id[24:]); r.status != 125 || !strings.Contains(r.stderr, "give the whole ID") {
		t.Errorf("a task by a part of its ID: %+v", r)
	}
	if r := s.stint("wait", s.submit("true")); r.status != 0 {
		t.Errorf("a task of a group that answers: %+v", r)
	}
	if err := mail.Again(); err != nil {
		t.Fatal(err)
	}
	for { // until the group has a leader
		if r := s.stint("ls", "--json"); r.status == 0 && strings.Contains(r.stdout, news) {
			break
		}
	}
	s.stop()
}

// Groups that cannot be right are refused before a database is asked.
func TestC11_GroupsThatServeRefuses(t *testing.T) {
	const store = "--store=redis://127.0.0.1:1"
	for _, c := range []struct{ args, says string }{
		{"--group a=b", "--group needs --store"},
		{store + " --group a=", "name its queues"},
		{store + " --group a", "name its queues"},
		{store + " --group A=b", "a name has up to 40"},
		{store + " --group default=b", "is the name of the group of all other queues"},
		{store + " --group-store a=redis://:secret@127.0.0.1:1", "NAME as in --group"},
		{store + " --group a=b --group-store a=secret", "NAME as in --group"},
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
