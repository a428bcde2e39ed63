//go:build linux

package main_test

import (
	"slices"
	"strings"
	"testing"
)

// How many commands run at once can be changed while the server runs, up and down, and
// is what stats shows.
func TestB5_JobsOfAServer(t *testing.T) {
	s := serve(t) // with -j2
	pipe := fifo(t)
	ev := events(t, pipe)
	var ids, gates []string
	for range 6 {
		gates = append(gates, fifo(t))
		ids = append(ids, s.submit("echo begun > "+pipe+"; read line < "+gates[len(ids)]))
	}
	ev.next()
	ev.next()
	s.stint("jobs").want(t, "2 commands at once, 2 running\n", "", 0)
	wantMost := func(most string, args ...string) { // slots that are being given are counted
		t.Helper()
		if r := s.stint(append([]string{"jobs"}, args...)...); r.status != 0 || !strings.HasPrefix(r.stdout, most) {
			t.Errorf("jobs %v: %+v, want %s", args, r, most)
		}
	}
	wantMost("4 commands at once, ", "4")
	ev.next()
	ev.next()
	for !strings.Contains(s.stint("jobs", "--json").stdout, `{"most":4,"running":4}`) { // the last ones are on their way
	}
	s.stint("jobs", "1").want(t, "1 command at once, 4 running\n", "", 0)
	for _, gate := range gates[:4] { // one starts when the last of them has ended
		write(t, gate, "go\n")
	}
	ev.next()
	s.stint("jobs").want(t, "1 command at once, 1 running\n", "", 0)
	for !strings.Contains(s.stint("stats", "--json").stdout, `"slots":1`) { // the worker says so once a second
	}
	write(t, gates[4], "go\n")
	ev.next()
	write(t, gates[5], "go\n")
	s.stint(append([]string{"wait"}, ids...)...).want(t, "", "", 0)

	r := s.stint("jobs", "many")
	if r.status != 125 || !strings.Contains(r.stderr, `"many": give a number`) {
		t.Errorf("jobs many: %+v", r)
	}
	if r := s.stint("jobs", ""); r.status != 125 || !strings.Contains(r.stderr, "empty") {
		t.Errorf("jobs of nothing: %+v", r)
	}
	wantMost("1 command at once, ")
	s.stop()
	s.start()
	wantMost("2 commands at once, ")
	s.stop()
}

// A number of commands that is reduced, or that leaves clients few connections, is
// reported on standard error.
func TestB5_JobsSaysWhatItHasSet(t *testing.T) {
	s := &served{t: t, dir: t.TempDir()}
	const files = 400 // 64 are spare, and a command takes 5
	s.cmd = limited(t, s.command("serve", "-j2"), files)
	s.cmd.Stderr = t.Output()
	s.out = startLines(t, s.cmd)
	s.out.next()
	const (
		cut = "stint: not 99999999 commands at once but 67: its limits on open files and on processes allow no more; "
		few = "stint: the server has descriptors for 4 connections besides these commands"
	)
	for _, test := range []struct {
		to, most string
		says     []string
	}{
		{"0", "67", []string{few}},
		{"99999999", "67", []string{cut, few}},
		{"2", "2", nil},
		{"67", "67", []string{few}},
		{"20", "20", nil},
	} {
		r := s.stint("jobs", test.to)
		said := slices.Collect(strings.Lines(r.stderr))
		running := test.most + " commands at once, 0 running\n"
		if r.status != 0 || r.stdout != running || !slices.EqualFunc(said, test.says, strings.HasPrefix) {
			t.Errorf("jobs %s: %+v, want %s and %q", test.to, r, test.most, test.says)
		}
	}
	s.stint("jobs").want(t, "20 commands at once, 0 running\n", "", 0)
	s.stop()
}
