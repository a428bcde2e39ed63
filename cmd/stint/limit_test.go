//go:build linux

package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// limitLine is a line of stint limit ls --json.
type limitLine struct {
	Scope, Queue, Key, Limit string
	Value                    any
	InUse                    *int `json:"in_use"`
	Operator                 bool
	By                       string
	Program                  any
}

// limits are the limits that are set, each in a few words.
func (s *served) limits() (texts []string) {
	s.t.Helper()
	for _, l := range parse[limitLine](s.t, s.stint("limit", "ls", "--json").stdout) {
		text := strings.Join(strings.Fields(fmt.Sprint(l.Scope, " ", l.Queue, " ", l.Key, " ", l.Limit, " ", l.Value)), " ")
		if l.Program != nil {
			text += fmt.Sprintf(" over %v", l.Program)
		}
		if l.Operator != strings.Contains(l.By, "@") {
			s.t.Errorf("%s is set by %q, operator: %t", text, l.By, l.Operator)
		}
		texts = append(texts, text)
	}
	return texts
}

func (s *served) wantLimits(want ...string) {
	s.t.Helper()
	if got := s.limits(); !slices.Equal(got, want) {
		s.t.Errorf("the limits are\n%q, want\n%q", got, want)
	}
}

// runs waits until a task runs.
func (s *served) runs(id string) {
	s.t.Helper()
	for {
		switch state := s.task(id).State; state {
		case queue.Running:
			return
		case queue.Waiting, queue.Held:
		default:
			s.t.Fatalf("task %s is %s", id, state)
		}
	}
}

// explains checks the first reason for which a task waits.
func (s *served) explains(id string, parts ...string) {
	s.t.Helper()
	first, _, _ := strings.Cut(s.stint("why", id).stdout, "\n")
	for _, part := range parts {
		if !strings.Contains(first, part) {
			s.t.Errorf("it waits because %q, want %q in it", first, part)
		}
	}
}

// Limits take effect in a running server when they are set and unset, and the reasons
// name the user that set them.
func TestC12_LimitsAreLive(t *testing.T) {
	s := serve(t, "-j4")
	s.stint("limit").want(t, "no limit is set; see stint limit set --help\n", "", 0)
	s.stint("limit", "set", "--all", "--running", "1").want(t, "all queues: running 1\n", "", 0)
	first := s.submit("--key", "k", "sleep 1000")
	second := s.submit("--key", "k", "sleep 1000")
	s.runs(first)
	s.explains(second, "all queues together are at their limit: 1 of 1 run (set by ", "@", "1 of queue default")
	s.stint("limit", "set", "--all", "--running", "3").want(t, "all queues: running 3\n", "", 0)
	s.runs(second)
	s.stint("limit", "set", "--queue", "default", "--key", "k", "--running", "2").
		want(t, "key k of queue default: running 2\n", "", 0)
	third := s.submit("--key", "k", "sleep 1000")
	s.explains(third, "key k is at its limit: 2 of 2 run (set by ")
	lines := parse[limitLine](t, s.stint("limit", "ls", "--json").stdout)
	if len(lines) != 2 || lines[0].InUse == nil || *lines[0].InUse != 2 || lines[1].InUse == nil || *lines[1].InUse != 2 {
		t.Errorf("the limits are %+v, want 2 of each in use", lines)
	}
	s.stint("limit", "unset", "--queue", "default", "--key", "k").
		want(t, "key k of queue default: unset; no other such limit applies\n", "", 0)
	s.runs(third)
	s.stint("limit", "set", "--queue", "default", "--pending", "3").want(t, "queue default: pending 3\n", "", 0)
	s.stint("submit", "true").want(t, "", "has 3 unfinished tasks, its limit is 3", 125)
	s.stint("cancel", "--all", "--wait")
	s.stop()
}

// A limit that is set by hand stays when a program sets its own at its start, and the
// server ends; when it is taken back the program's is in force again.
func TestC4_LimitsOfOperatorsAndPrograms(t *testing.T) {
	s := serve(t)
	declare := func() {
		t.Helper()
		server, err := remote.Open(filepath.Join(s.dir, remote.DefaultDir), remote.Config{})
		if err != nil {
			t.Fatal(err)
		}
		limits := queue.Settings{Max: 8, Rate: queue.Rate{PerSecond: 100, Burst: 5}}
		if err := server.Configure(t.Context(), "nightly", limits); err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
	declare()
	set := s.stint("limit", "set", "--queue", "nightly", "--running", "4", "--pending", "1000", "--cap", "low=2,normal=3")
	set.want(t, "queue nightly: running 4, cap low=2 normal=3, pending 1000\n",
		"queue nightly has neither tasks nor workers", 0)
	s.stint("limit", "set", "--queue", "nightly", "--key-rate", "none", "--per-key", "3")
	s.stint("limit", "set", "--each", "--per-key", "2", "--rate", "30/m").
		want(t, "each queue: per-key 2, rate 30/m\n", "", 0)
	declare()
	want := []string{
		"each per-key 2", "each rate map[per_second:0.5]",
		"queue nightly running 4 over 8", "queue nightly cap map[low:2 normal:3]", "queue nightly per-key 3",
		"queue nightly rate map[burst:5 per_second:100]", "queue nightly key-rate <nil>", "queue nightly pending 1000",
	}
	s.wantLimits(want...)
	s.kill()
	s.start()
	s.wantLimits(want...)
	r := s.stint("limit", "ls")
	for _, says := range []string{
		"FOR ", "queue nightly  running ", ", over 8 of the program", "100/s, burst 5", " program ",
	} {
		if !strings.Contains(r.stdout, says) {
			t.Errorf("stint limit ls prints\n%s\nwant %q in it", r.stdout, says)
		}
	}
	s.submit("--queue", "nightly", "true")
	if r := s.stint("stats"); !strings.Contains(r.stdout, "queue nightly  running ") {
		t.Errorf("stint stats prints\n%s\nwant the limits too", r.stdout)
	}
	s.stint("limit", "unset", "--queue", "nightly", "running", "cap").
		want(t, "queue nightly: running 8 (set by a program)\n", "", 0)
	s.stint("limit", "unset", "--queue", "nightly", "cap").want(t, "", "has set no such limit for queue nightly", 1)
	s.stint("limit", "unset", "--queue", "nightly")
	s.stint("limit", "unset", "--each")
	s.wantLimits("queue nightly running 8", "queue nightly rate map[burst:5 per_second:100]")
	s.stop()
}

// What makes no sense is refused, with a word on what to do, and changes nothing.
func TestC4_LimitRefuses(t *testing.T) {
	s := serve(t)
	for args, says := range map[string]string{
		"set --running 3":                       "give one of --queue NAME, --each or --all",
		"set --queue q --all --running 3":       "give one of --queue NAME, --each or --all",
		"set --queue q":                         "give a limit to set, as in --running 4",
		"set --queue q --running many":          "is not a number of tasks",
		"set --queue q --running 0":             "use stint pause to start nothing",
		"set --queue q --running -1":            "give 1 or more",
		"set --queue q --cap urgent=2":          "use lowest, lower, low",
		"set --queue q --cap low":               "is not TIER=N",
		"set --queue q --cap low=2,low=3":       "tier low has two caps",
		"set --queue q --cap low=none":          "leave tier low out",
		"unset --queue q --running":             "named without dashes here: stint limit unset … running",
		"set --queue q --running 2 --cap low=3": "--cap low=3 is above --running 2",
		"set --queue q --running 2 --per-key 3": "--per-key 3 is above --running 2",

		"set --queue q --rate fast":        "it has to begin with a number",
		"set --queue q --rate 0/s":         "--rate: 0/s would start nothing: give more, as in 5/s, none for no limit",
		"set --queue q --key-rate 0":       "--key-rate: 0 would start nothing",
		"set --queue q --rate 1/fortnight": "\"fortnight\" after the slash: use s, m, h, d or a duration such as 90s",
		"set --queue q --rate 0.01/d":      "invalid rate \"0.01/d\": rate 1.1574074074074074e-07 is outside 1e-06 to",

		"set --queue q --burst 3":                    "--burst needs a --rate",
		"set --queue q --rate none --burst 3":        "--burst needs a --rate",
		"set --all --rate 3/s":                       "rate is not a limit of all queues together",
		"set --queue q --key k --pending 3":          "one key has no limit pending",
		"set --all --key k --rate 3/s":               "rate is not a limit of all queues together",
		"unset --queue q speed":                      `"speed" is not a limit: name running`,
		"unset --queue q key-burst":                  `"key-burst" is part of a limit: name key-rate`,
		"unset running":                              "give one of --queue NAME, --each or --all",
		"unset --queue q running":                    "stint limit ls lists the limits",
		"raise":                                      "is not a command of stint limit",
		"set --queue q running":                      "takes only flags",
		"set --queue bad\x01name --running 1":        "queue",
		"set --queue q --key-rate 5/s --key-burst x": "give a number",
	} {
		r := s.stint(append([]string{"limit"}, strings.Split(args, " ")...)...)
		if !strings.Contains(r.stderr, says) || r.stdout != "" || r.status != 125 && r.status != 1 {
			t.Errorf("%s: %+v, want it to say %q", args, r, says)
		}
	}
	s.wantLimits()
	s.stop()
}
