//go:build linux

package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// schedule is a schedule as stint prints it in JSON.
type schedule struct {
	queue.ScheduleState
	Task struct {
		queue.Spec
		Command struct {
			Script, Dir string
			Args, Env   []string
		}
	} `json:"task"`
}

// schedules are those that the server has.
func (s *served) schedules() (all []schedule) {
	s.t.Helper()
	r := s.stint("schedule", "ls", "--json")
	for line := range strings.Lines(r.stdout) {
		var one schedule
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.t.Fatalf("schedule ls: %+v, %v", r, err)
		}
		all = append(all, one)
	}
	return all
}

// A schedule has the task that the flags describe; its life is in the words of the
// commands.
func TestC8_ScheduleCommands(t *testing.T) {
	s := serve(t)
	s.stint("schedule", "ls").want(t, "NAME  STATE  NEXT  LAST  CRON  ZONE  WORK\n", "", 0)
	add := []string{
		"schedule", "add", "--zone", "Europe/Berlin", "yearly", "0 0 1 1 *", "--tier", "low", "--key", "k",
		"--missed", "skip",
		"--retries", "4", "-e", "SECRET=hidden", "--skip-overlap", "--", "./report", "--all",
	}
	r := s.stint(add...)
	if !strings.HasPrefix(r.stdout, "schedule yearly ticks next at 20") ||
		!strings.HasSuffix(r.stdout, "-01-01T00:00:00+01:00\n") {
		t.Errorf("add: %+v", r)
	}
	all := s.schedules()
	if len(all) != 1 {
		t.Fatalf("there are %d schedules", len(all))
	}
	got := all[0]
	if got.Cron != "0 0 1 1 *" || got.Zone != "Europe/Berlin" || got.Missed != queue.MissedSkip || !got.SkipOverlap ||
		got.Task.Tier != -1 || got.Task.Key != "k" || got.Task.MaxAttempts != 5 || got.Task.Command.Dir != s.dir ||
		strings.Join(got.Task.Command.Args, " ") != "./report --all" || strings.Join(got.Task.Command.Env, " ") != "SECRET" {
		t.Errorf("the schedule is %+v", got)
	}
	s.stint(add...).want(t, "", "there is a schedule yearly already: --replace changes it", 1)
	s.stint("schedule", "pause", "yearly", "--reason", "too loud").want(t, "schedule yearly paused\n", "", 0)
	if r := s.stint("schedule", "ls"); !strings.Contains(r.stdout, "yearly  paused: too loud  -") ||
		!strings.Contains(r.stdout, "./report --all") || strings.Contains(r.stdout, "hidden") {
		t.Errorf("ls: %+v", r)
	}
	s.stint("schedule", "add", "--replace", "yearly", "0 0 1 1 *", "echo $((1+1))", "--retries", "1").want(
		t, s.schedules()[0].Next.Format("schedule yearly ticks next at 2006-01-02T15:04:05Z07:00\n"), "", 0)
	if got := s.schedules()[0]; got.Paused == nil || got.Task.Command.Script != "echo $((1+1))" ||
		got.Task.MaxAttempts != 2 {
		t.Errorf("the schedule was changed to %+v", got)
	}
	if r := s.stint("schedule", "ls"); !strings.Contains(r.stdout, "  0 0 1 1 *  UTC   echo") {
		t.Errorf("ls of a schedule without --zone: %+v", r)
	}
	s.stint("schedule", "add", "other", "@daily", "--zone", "Berlin", "true").want(t, "",
		`stint: schedule "other": this machine knows no time zone "Berlin": give a name of the IANA database`, 125)
	s.stint("schedule", "resume", "yearly").want(t, "schedule yearly resumed\n", "", 0)
	s.stint("schedule", "rm", "yearly", "--json").want(t, `{"done":"removed","schedule":"yearly"}`+"\n", "", 0)
	for _, name := range []string{"pause", "resume", "rm", "trigger"} {
		s.stint("schedule", name, "yearly").want(t, "", `schedule "yearly"`, 1)
	}
	s.stop()
}

// Schedules tick while a server runs.
func TestC8_ScheduleTicks(t *testing.T) {
	pipe := fifo(t)
	ev := events(t, pipe)
	s := serve(t)
	if r := s.stint("schedule", "add", "often", "@every 1s", "echo tick > "+pipe); r.status != 0 {
		t.Fatalf("add: %+v", r)
	}
	for range 2 {
		if got := ev.next(); got != "tick" {
			t.Errorf("got %q", got)
		}
	}
	s.stint("schedule", "rm", "often").want(t, "schedule often removed\n", "", 0)
	s.stop()
}

func TestC8_ScheduleRefuses(t *testing.T) {
	s := serve(t)
	for _, row := range []struct {
		args []string
		says string
	}{
		{[]string{"add"}, "give a NAME, and a CRON expression in quotes"},
		{[]string{"add", "n", "@daily"}, "give a command"},
		{[]string{"add", "n", "61 * * * *", "true"}, "61"},
		{[]string{"add", "n", "5", "4", "go.mod", "true"}, "give five fields in quotes"},
		{[]string{"add", "n", "@daily", "--zone", "Mars/Olympus", "true"}, "Mars/Olympus"},
		{[]string{"add", "n", "@daily", "--missed", "never", "true"}, `--missed is "never": give once, skip or all`},
		{[]string{"add", "n", "@daily", "--missed", "all", "--skip-overlap", "true"}, "take once or skip"},
		{[]string{"add", "n", "@daily", "--at", "06:00", "true"}, "unknown flag: --at"},
		{[]string{"pause"}, "give the name of one schedule"},
		{[]string{"tricker", "n"}, "trigger"},
	} {
		s.stint(append([]string{"schedule"}, row.args...)...).want(t, "", row.says, 125)
	}
	s.stop()
}
