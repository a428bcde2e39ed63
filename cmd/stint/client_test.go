//go:build linux

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// parse reads a line of JSON for each value.
func parse[T any](t *testing.T, text string) (values []T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		values = append(values, v)
	}
	return values
}

// A command finds the directory, the variables and the input that its submitter
// has asked for, and the task has what the flags say.
func TestC1_SubmitFlags(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--queue", "other").want(t, "queue other is paused\n", "has neither tasks nor workers", 0)
	first := s.submit("--", "true")
	t.Setenv("FROM_HERE", "here")
	write(t, filepath.Join(s.dir, "in"), "from a file")
	id := s.submit("--queue", "other", "--tier", "high", "--key", "k", "--group", "g", "--after", first[:18],
		"--timeout", "90", "--retries", "4", "--label", "a=b", "--label", "c=d", "--env", "X=1", "-e", "FROM_HERE",
		"--stdin", "in",
		"--deadline", "2126-11-21T06:00:00Z", "--unique", "u", "--", "cat", "-n")
	task := s.task(id)
	asked := fmt.Sprintln(task.Queue, task.Tier, task.Key, task.Group, task.After, task.Timeout, task.MaxAttempts,
		task.Unique, task.Labels, task.Deadline.Year())
	if want := "other high k g [" + first + "] 1m30s 5 u map[a:b c:d] 2126\n"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	got := fmt.Sprintf("%q %s %q %d", task.Command.Args, task.Command.Dir, task.Command.Env, task.Command.StdinBytes)
	if want := fmt.Sprintf(`["cat" "-n"] %s ["X" "FROM_HERE"] 11`, s.dir); got != want {
		t.Errorf("its command is %s, want %s", got, want)
	}
	secret := s.task(id, "--reveal").Command
	if got := fmt.Sprintf("%q %s", secret.Env, secret.Stdin); got != `["X=1" "FROM_HERE=here"] from a file` {
		t.Errorf("revealed, it has %s", got)
	}
	again := s.stint("submit", "--queue", "other", "--unique", "u", "false")
	again.want(t, id+"\n", "already", 0)
	r := s.stint("submit", "--json", "--kind", "email", "--payload", `{"to":"gopher"}`)
	other := parse[queue.Receipt](t, r.stdout)[0].ID.String()
	if task := s.task(other); task.Kind != "email" || string(task.Payload) != `{"to":"gopher"}` {
		t.Errorf("%+v", task.Spec)
	}
	cmd := s.command("submit", "--stdin", "-", "-e", "A=it's", "--dir", "/", `read x; echo "$x $A $(pwd)"`)
	r = runCmd(t, cmd, "piped\n")
	s.stint("wait", strings.TrimSpace(r.stdout)).want(t, "", "", 0)
	s.stint("logs", strings.TrimSpace(r.stdout)).want(t, "piped it's /\n", "", 0)
	s.stop()
}

// A flag of stint behind the command's name is the command's. That is said, once, unless
// "--" shows that it is meant.
func TestC1_WarnsOfFlagsBehindTheCommand(t *testing.T) {
	s := serve(t)
	const says = "stint: --tier is passed to echo, since flags of stint must precede the command; if it is for stint, " +
		"write stint submit … --tier high -- echo …; if it is for echo, write stint submit … -- echo …\n"
	r := s.stint("submit", "echo", "--tier", "high", "--key", "k")
	if r.stderr != says || !taskID.MatchString(r.stdout) || s.task(strings.TrimSpace(r.stdout)).Tier != 0 {
		t.Errorf("submit: %+v", r)
	}
	for _, test := range []struct{ args, want string }{
		{"submit -- echo --tier high", ""},
		{"submit echo -- --tier high", ""},
		{"submit echo --help --tiers --version -n --tierhigh tier", ""},
		{"submit echo a --tier=low", "write stint submit … --tier=low -- echo"},
		{"submit echo --json", "write stint submit … --json -- echo …"},
		{"schedule add --replace s @daily echo --key k", "write stint schedule add … --key k -- echo …"},
		{"schedule add --replace s @daily -- echo --key k", ""},
		{"run echo --jobs 5 ::: a", "write stint run … --jobs 5 -- echo …"},
		{"run -j1 -- echo --jobs 5 ::: a", ""},
		{"run echo a ::: --jobs --tag", ""},
	} {
		r := s.stint(strings.Fields(test.args)...)
		lines := min(len(test.want), 1)
		if r.status != 0 || strings.Count(r.stderr, "\n") != lines || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%s: %+v, want %q", test.args, r, test.want)
		}
	}
	if r := s.stint("submit", "echo $((1))", "--tier", "high"); r.stderr != "" { // flags may follow a script
		t.Errorf("a script: %+v", r)
	}
	s.stop()
}

// A server is named by its directory or by its socket, with or without unix: before it.
func TestC6_ServerByItsSocket(t *testing.T) {
	s := serve(t)
	link := filepath.Join(s.dir, "link")
	if err := os.Symlink(filepath.Join(s.dir, "stint-data", "stint.sock"), link); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		"stint-data", "stint-data/", "unix:stint-data/stint.sock", "stint-data/stint.sock", "./link",
		filepath.Join(s.dir, "stint-data/stint.sock"),
	} {
		cmd := s.command("ls", "--json", "--server", address)
		cmd.Env = append(cmd.Env, "STINT_PATIENCE=1s")
		runCmd(t, cmd, "").want(t, "", "", 0)
	}
	s.stop()
	cmd := s.command("ls", "--server", "stint-data/stint.sock")
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=1ms")
	const says = "no server at stint-data/stint.sock: start one with stint serve, or name another with --server: " +
		"dial unix stint-data/stint.sock: connect: no such file"
	runCmd(t, cmd, "").want(t, "", says, 125)
}

// What makes no sense is refused before anything is submitted, with a word on
// what to do.
func TestC1_SubmitRefuses(t *testing.T) {
	s := serve(t)
	for says, args := range map[string]string{
		"give a command":                           "submit",
		"use one of them":                          "submit --at 2126-11-21T06:00 --delay 1s true",
		"give a time, as in":                       "submit --at noon true",
		"--tier: unknown priority \"urgent\": use": "submit --tier urgent true",
		"--tier: unknown priority \"idler\": use":  "edit --tier idler ffffffff",
		"not NAME=value":                           "submit --env =x true",
		"--deadline 2020-01-01T06:00:00":           "submit --deadline 2020-01-01T06:00 true",
		"NOT_SET is not set here":                  "submit --env NOT_SET true",
		"is not JSON":                              "submit --kind email --payload gopher",
		"has a --payload and no com":               "submit --kind email true",
		"stint: --timeout is negative: give 0 or":  "submit --timeout -1s true",
		"stint: --unique-for is negative: give 0":  "submit --unique u --unique-for -1s true",
		"--retries -1: give a number from 0 to":    "submit --retries -1 true",
		"--retries 9223372036854775807: give a nu": "submit --retries 9223372036854775807 true",
		"0 lists all":                              "ls -n -1",
		"--stdin: open nothing":                    "submit --stdin nothing true",
		"see its --help":                           "frobnicate",
		"did you mean submit?":                     "sumbit true",
		"is not a command of stint dead":           "dead list",
		"is not a command of stint store":          "store migrate",
		"which the store does not have":            "submit --after 01890a5d-ac96-774b-bcce-b302099a8057 true",
		"or the end of the ID as":                  "submit --after xyz true",
		"begins with ffffffffff: stint ls lists":   "show ffffffffff",
		"the states are scheduled, held, waiting":  "ls --state sleeping",
		"by their IDs":                             "cancel",
		"looks like unix:":                         "ls --server ftp://x",
		"see stint dead purge --help":              "dead purge --state running",
		"stint: not found: 01890a5d":               "show 01890a5d-ac96-774b-bcce-b302099a8057",
		"stint: unique_for is 9000h":               "submit --unique u --unique-for 9000h true",
		"the number is too large":                  "submit --retries 99999999999999999999 true",
		"leave one of them out":                    "cancel --all --key k",
		"unknown flag: --json":                     "logs --json ffffffff",
		"--dir: --server names the directory":      "nodes --dir x",
		"as in stint jobs -- -1":                   "jobs -1",
		`stint: number of jobs "many"`:             "jobs many",
	} {
		r := s.stint(strings.Fields(args)...)
		wrong := !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "queue: ")
		if wrong || r.stdout != "" || r.status != 125 && r.status != 1 {
			t.Errorf("%s: %+v, want it to say %q", args, r, says)
		}
	}
	if r := s.stint("ls", "--json"); r.stdout != "" {
		t.Errorf("there are tasks: %s", r.stdout)
	}
	s.stop()
	cmd := s.command("ls")
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=1ms")
	runCmd(t, cmd, "").want(t, "", "no server at stint-data: start one with stint serve", 125)
	cmd = s.command("ls")
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=soon")
	runCmd(t, cmd, "").want(t, "", "STINT_PATIENCE=soon: give a time", 125)
}

// The value of a label is kept as it is given, with commas and quotes, and finds its task.
func TestC4_LabelsAreTakenAsTheyAre(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	for _, value := range []string{`"hi"`, "a,b=c", "http://x/?a=1,b", ""} {
		label := "l=" + value
		id := s.submit("--label", label, "--label", "m=1,2", "true")
		if got := s.task(id).Labels; got["l"] != value || got["m"] != "1,2" || len(got) != 2 {
			t.Errorf("--label %s is kept as %q", label, got)
		}
		if r := s.stint("ls", "--json", "--label", label); len(parse[shown](t, r.stdout)) != 1 {
			t.Errorf("--label %s finds %+v", label, r)
		}
	}
	s.stint("submit", "--label", "l", "true").want(t, "", "give NAME=VALUE", 125)
	s.stint("submit", "--label", "=l", "true").want(t, "", "give NAME=VALUE", 125)
	s.stop()
}

// Tasks are found by flags, a page at a time, and named by the ends of their IDs.
func TestC4_FindTasks(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all", "--reason", "tests").want(t, "all queues are paused\n", "", 0)
	var ids []string
	for i := range 5 {
		n := strconv.Itoa(i)
		ids = append(ids, s.submit("--key", "k"+strconv.Itoa(i%2), "--label", "n="+n, "--", "echo", "it's", n))
	}
	find := func(want []int, flags ...string) {
		t.Helper()
		r := s.stint(append([]string{"ls", "--json"}, flags...)...)
		var got []int
		for _, task := range parse[shown](t, r.stdout) {
			got = append(got, slices.Index(ids, task.ID.String()))
			if words := task.Command.Args; len(words) != 3 || words[1] != "it's" {
				t.Errorf("%v: the command is %q", flags, words)
			}
		}
		if !slices.Equal(got, want) || r.status != 0 {
			t.Errorf("%v: found %v, want %v", flags, got, want)
		}
	}
	find([]int{4, 3, 2, 1, 0})
	find([]int{4, 3}, "-n", "2")
	find([]int{2, 1}, "-n", "2", "--behind", ids[3])
	find([]int{0, 1, 2, 3, 4}, "--oldest", "-n", "0")
	find([]int{3, 1}, "--key", "k1")
	find([]int{2}, "--label", "n=2")
	find([]int{4, 3, 2, 1, 0}, "--state", "held,waiting", "--kind", "command")
	find(nil, "--state", "dead")
	find(nil, "--queue", "other")
	r := s.stint("ls", "-n", "1")
	row := regexp.MustCompile(`^ID .*\n` + ids[4][28:] +
		` +held: queue_paused +- +- +default +- +k0 +n=4 +\S+ +echo 'it'\\''s' 4\n$`)
	if !row.MatchString(r.stdout) || !strings.Contains(r.stderr, "--behind "+ids[4]) {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{
		ids[2], ids[2][28:], ids[2][:18], strings.ToUpper(ids[2][:21]), strings.ReplaceAll(ids[2], "-", ""),
	} {
		if task := s.task(name); task.ID.String() != ids[2] {
			t.Errorf("%s is %s", name, task.ID)
		}
	}
	r = s.stint("why", ids[2])
	if !strings.HasPrefix(r.stdout, "all queues were paused (") || !strings.Contains(r.stdout, "@") {
		t.Errorf("why: %+v", r)
	}
	if reasons := parse[[]queue.Reason](t, s.stint("why", "--json", ids[2]).stdout)[0]; reasons[0].Code != "queue_paused" {
		t.Errorf("why: %+v", reasons)
	}
	s.stint("resume", "--all").want(t, "all queues are resumed\n", "", 0)
	s.stint(append([]string{"wait"}, ids...)...).want(t, "", "", 0)
	stats := parse[queue.Stats](t, s.stint("stats", "--json").stdout)[0]
	if stats.Queues["default"].States[queue.Succeeded] != 5 || len(stats.Workers) != 1 {
		t.Errorf("%+v", stats)
	}
	s.stop()
}

// Orders are obeyed, say how many tasks have changed, and why none has.
func TestC4_Orders(t *testing.T) {
	s := serve(t)
	pipe := fifo(t)
	ev := events(t, pipe)
	running := s.submit("--key", "a", "echo > "+pipe+"; sleep 1000")
	ev.next()
	dependent := s.submit("--after", running, "--key", "b", "--", "true")
	s.stint("why", dependent).want(t, "it waits for task "+running+", which is running\n", "", 0)
	if r := s.stint("pause", running, "--reason", "lunch"); r.status != 0 || !strings.HasPrefix(r.stdout, "1 task ") {
		t.Errorf("pause: %+v", r)
	}
	for s.task(running).State != queue.Paused {
	}
	if r := s.stint("why", running); !strings.Contains(r.stdout, "lunch") || !strings.Contains(r.stdout, "stint resume") {
		t.Errorf("why: %+v", r)
	}
	s.stint("resume", "--key", "a").want(t, "1 task resumed\n", "", 0)
	ev.next()
	s.stint("cancel", "--json", "--wait", "--all").want(t, `{"changed":2}`+"\n", "", 0)
	s.stint("wait", running, dependent).want(t, "", "cancelled", 130)
	if r := s.stint("why", running); !strings.HasPrefix(r.stdout, "it waits for nothing: cancelled ") {
		t.Errorf("why: %+v", r)
	}
	s.stint("cancel", running).want(t, "0 tasks cancelled\n", "cannot be cancelled: its state is cancelled", 1)
	s.stint("pause", "--key", "nobody").want(t, "0 tasks paused\n", "no task can be paused", 1)
	s.stint("cancel", "01890a5d-ac96-774b-bcce-b302099a8057").want(t, "0 tasks cancelled\n", "not found", 1)
	s.stint("retry", "--key", "nobody").want(t, "0 tasks to run again\n", "no task can be run again", 1)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	s.stint("pause", "--queue", "default").want(t, "queue default is paused\n", "", 0)
	s.stint("resume", "--all").want(t, "all queues are resumed\n", "queue default is still paused", 0)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	s.stint("resume", "--queue", "default").want(t, "queue default is resumed\n", "all queues are still paused", 0)
	s.stint("resume", "--all").want(t, "all queues are resumed\n", "", 0)
	s.stint("retry", dependent).want(t, "1 task to run again\n", "", 0)
	if got := on(new(s.task(dependent))); !slices.Contains(got, "retry") {
		t.Errorf("its steps are %v", got)
	}
	s.stop()
}

// The log of a task is followed while it is written, through a restart of the
// server, and is cut where it is too long.
func TestC4_FollowLogs(t *testing.T) {
	s := serve(t, "--output", "10k")
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("echo one; echo $$ > " + pipe + "; read line < " + gate + "; echo $line; yes | head -c 20000")
	pid := ev.pid()
	follow := s.command("logs", "-f", id)
	out := startLines(t, follow)
	if got := out.next(); got != "one" {
		t.Errorf("it follows with %q", got)
	}
	s.kill()
	wantGone(t, []int{pid}) // or it reads the line
	s.start("--output", "10k")
	ev.next()
	write(t, gate, "two\n")
	for _, want := range []string{"[attempt 2, ", "one", "two", "y"} {
		if got := out.next(); !strings.HasPrefix(got, want) {
			t.Errorf("it goes on with %q, want %q", got, want)
		}
	}
	for !strings.HasSuffix(out.next(), " bytes are missing here]") {
	}
	if status := finish(t, follow); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	if r := s.stint("show", id); !strings.Contains(r.stdout, "the limit on output was reached") {
		t.Errorf("show: %+v", r)
	}
	s.stop()
}

// wait returns after --timeout, and the tasks continue.
func TestC1_WaitGivesUp(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("echo > "+pipe+"; read line < "+gate+"; kill -TERM $$", "--retries", "2")
	s.stint("wait", "--timeout", "50ms", id).want(t, "", "not finished yet", 124)
	for range 3 {
		ev.next()
		write(t, gate, "go\n")
	}
	r := s.stint("wait", "--json", id)
	if task := parse[shown](t, r.stdout)[0]; r.status != 143 || task.Failures != 3 {
		t.Errorf("wait: %d after %d failures", r.status, task.Failures)
	}
	s.stop()
}
