//go:build linux

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// Each line of --from is a command, as one word of a command line would be, or a task in
// JSON with any field. Flags are for all lines that do not say otherwise.
func TestC1_SubmitFrom(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	first := s.submit("--", "true")
	write(t, filepath.Join(s.dir, "in"), strings.Join([]string{
		`make`, ``, `  echo $X | cat  `, ` { date; }`,
		`{"command":{"args":["cat","-n"],"dir":"/tmp","env":["A=1"],"stdin_base64":"eA=="},"key":"mine","labels":{"l":"2"}}`,
		`{"command":{"script":"exit 3"},"max_attempts":4,"tier":"low","after":["` + first + `"],"timeout_ns":1000000000}`,
		`{"kind":"email","payload":{"to": "gopher"},"queue":"mails","run_at":"2126-01-01T00:00:00Z","group":"g"}`,
		`{"kind":"blob","payload_base64":"AAE=","unique":"u","max_crashes":2,"deadline":"2126-01-02T00:00:00Z"}`,
	}, "\n"))
	r := s.stint("submit", "--from", "in", "--key", "all", "--label", "l=1", "--env", "X=2", "--tier", "high")
	ids := strings.Fields(r.stdout)
	if r.status != 0 || r.stderr != "" || len(ids) != 7 || !slices.IsSorted(ids) {
		t.Fatalf("%+v", r)
	}
	var got []string
	for _, id := range ids {
		task := s.task(id, "--reveal")
		c := task.Command
		got = append(got, fmt.Sprintf("%s %s %d %s %v %q%q %s %v %s%s", task.Kind, task.Key, task.MaxAttempts, task.Tier,
			task.Labels, c.Script, c.Args, strings.ReplaceAll(c.Dir, s.dir, "here"), c.Env, c.Stdin, task.Payload))
	}
	want := []string{
		`command all 1 high map[l:1] ""["make"] here [X=2] `,
		`command all 1 high map[l:1] "echo $X | cat"[] here [X=2] `,
		`command all 1 high map[l:1] "{ date; }"[] here [X=2] `,
		`command mine 1 high map[l:2] ""["cat" "-n"] /tmp [X=2 A=1] x`,
		`command all 4 low map[l:1] "exit 3"[] here [X=2] `,
		`email all 0 high map[l:1] ""[]  [] {"to":"gopher"}`,
		`blob all 0 high map[l:1] ""[]  [] `,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tasks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	after, mail, blob := s.task(ids[4]), s.task(ids[5]), s.task(ids[6])
	rest := fmt.Sprint(after.After, after.Timeout, mail.Queue, mail.Group, mail.RunAt.Year(), blob.Unique, blob.MaxCrashes,
		blob.Deadline.Day())
	if want := fmt.Sprint([]string{first}, time.Second, "mails", "g", 2126, "u", 2, 2); rest != want {
		t.Errorf("they have %s, want %s", rest, want)
	}
	r = s.stint("submit", "--from", "in", "--json", "--kind", "email")
	if r.status != 125 || !strings.Contains(r.stderr, "in, line 1: a task of --kind email must be a line of JSON") {
		t.Errorf("commands of another kind: %+v", r)
	}
	s.stop()
}

// An invalid line ends the command, whether the client or the server detects it: the
// lines before it have been submitted, and none after it.
func TestC1_SubmitFromBadLines(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	good := strings.Repeat("true\n", 10)
	for says, line := range map[string]string{
		`unknown field "keys"`:                           `{"command":{"args":["true"]},"keys":"k"}`,
		`unknown field "arg"`:                            `{"command":{"arg":["true"]}}`,
		"ends before the object does":                    `{"command"`,
		`the field key takes a string, as in "tenant-7"`: `{"command":{"args":["true"]},"key":5}`,

		`the field run_at takes a time in RFC 3339, as in "2026-11-21T06:00:00Z"`:     `{"run_at":"tomorrow"}`,
		`the field deadline takes a time in RFC 3339, as in "2026-11-21T06:00:00Z"`:   `{"deadline":5}`,
		`the field command.args takes a list of strings, as in ["make", "all"]`:       `{"command":{"args":"true"}} x`,
		`the field command takes an object, as in {"args": ["make", "all"]}`:          `{"command":"true"}`,
		`the field after takes a list of IDs of tasks, as in ["01890a5d-`:             `{"After":["x"]}`,
		`the field tier takes a string, the name of a tier or -3 to 3, as in "high"`:  `{"tier":2}`,
		`the field command.stdin_base64 takes bytes in base64, as in "aGVsbG8K"`:      `{"command":{"stdin_base64":"%"}}`,
		`the field timeout_ns takes a whole number of nanoseconds, as in 60000000000`: `{"timeout_ns":"1m"}`,

		"command that begins with { needs a space": `{ echo a; }`,
		"there is data after the object":           `{"command":{"args":["true"]}} x`,
		"needs a \"command\"":                      `{"key":"k"}`,
		"with a command has no payload":            `{"command":{"args":["true"]},"payload":1}`,
		`has both "script" and "args"`:             `{"command":{"args":["true"],"script":"true"}}`,
		"make it an absolute path":                 `{"command":{"args":["true"],"dir":"here"}}`,
		"there is no program":                      `{"command":{}}`,
		"not text in UTF-8":                        "\xff",
		"longer than 2621440 bytes":                strings.Repeat("x", 3<<20),
		"key has 201 bytes":                        `{"command":{"args":["true"]},"key":"` + strings.Repeat("k", 201) + `"}`,
		"its deadline is not after its run_": `{"command":{"args":["true"]},"deadline":"2126-01-01T00:00:00Z",` +
			`"run_at":"2126-01-01T00:00:00Z"}`,
	} {
		write(t, filepath.Join(s.dir, "in"), good+line+"\n"+good)
		r := s.stint("submit", "--from", "in")
		if strings.Count(r.stdout, "\n") != 10 || r.status != 125 || !strings.Contains(r.stderr, "in, line 11: ") ||
			!strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "task 0") || // its place in the call
			!strings.Contains(r.stderr, "(submitted: 10 tasks before it, and none") {
			t.Errorf("%.80q: %d IDs, %d, %s", line, strings.Count(r.stdout, "\n"), r.status, r.stderr)
		}
	}
	for says, args := range map[string]string{
		"leave out \"true\"":               "--from in true",
		"give --unique-prefix":             "--from in --unique u",
		"--stdin and --payload are for":    "--from in --stdin -",
		"--from: open none":                "--from none",
		"--unique-prefix is for the lines": "--unique-prefix u true",
	} {
		s.stint(append([]string{"submit"}, strings.Fields(args)...)...).want(t, "", says, 125)
	}
	s.stop()
}

// With --unique-prefix the same lines can be submitted again after any crash: those that
// are there already are answered with their IDs, and counted.
func TestC7_SubmitFromAgain(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	const lines = 2500 // more than two batches
	write(t, filepath.Join(s.dir, "half"), strings.Repeat("true\n\n", lines/2))
	write(t, filepath.Join(s.dir, "all"), strings.Repeat("true\n\n", lines))
	half := s.stint("submit", "--from", "half", "--unique-prefix", "job")
	s.kill()
	s.start()
	all := s.stint("submit", "--from", "all", "--unique-prefix", "job")
	if half.status != 0 || all.status != 0 || !strings.HasPrefix(all.stdout, half.stdout) ||
		strings.Count(all.stdout, "\n") != lines {
		t.Errorf("half: %d, %s; all: %d, %s", half.status, half.stderr, all.status, all.stderr)
	}
	if want := "1250 of 2500 tasks existed already"; !strings.Contains(all.stderr, want) {
		t.Errorf("it says %q, want %q", all.stderr, want)
	}
	stats := parse[queue.Stats](t, s.stint("stats", "--json").stdout)[0]
	if n := stats.Queues["default"].States[queue.Held]; n != lines {
		t.Errorf("there are %d tasks, want %d", n, lines)
	}
	r := s.stint("submit", "--from", "half", "--unique-prefix", "job", "--json")
	type receipt struct {
		queue.Receipt
		Line int
	}
	receipts := parse[receipt](t, r.stdout)
	if len(receipts) != lines/2 || receipts[1].Line != 3 || !receipts[1].Existing ||
		receipts[1].ID.String() != strings.Fields(half.stdout)[1] {
		t.Errorf("the receipts are %+v", receipts[:2])
	}
	if task := s.task(receipts[1].ID.String()); task.Unique != "job-3" {
		t.Errorf("line 3 has the unique name %s", task.Unique)
	}
	s.stop()
}

// Standard input may have no end: what has come is submitted without waiting for more.
func TestC1_SubmitFromAStream(t *testing.T) {
	s := serve(t)
	cmd := s.command("submit", "--from", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := startLines(t, cmd)
	for _, text := range []string{"echo 1\n", "echo 2\necho 3\n"} {
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatal(err)
		}
		for range strings.Count(text, "\n") {
			s.stint("wait", out.next()).want(t, "", "", 0)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	s.stop()
}

// A signal ends the command while it waits for more lines; it says what has been submitted.
func TestC1_SubmitFromEndsByASignal(t *testing.T) {
	s := serve(t)
	cmd := s.command("submit", "--from", "-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := startLines(t, cmd)
	if _, err := io.WriteString(in, "echo 1\necho 2\n"); err != nil {
		t.Fatal(err)
	}
	out.next()
	out.next()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status := finish(t, cmd)
	const says = "(submitted: 2 tasks before it, and none after it; give --unique-prefix"
	if status != 130 || !strings.Contains(stderr.String(), says) {
		t.Errorf("it ends with %d, and says %q", status, stderr.String())
	}
	s.stop()
}

// unanswered starts a server that answers n calls of Submit, and accepts the tasks of later ones without an
// answer: accepted receives then.
func unanswered(t *testing.T, store queue.Store, n int64) (url string, accepted <-chan struct{}) {
	t.Helper()
	s := server.New(store, server.Config{})
	taken := make(chan struct{}, 1)
	var calls atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/submit") || calls.Add(1) <= n {
			s.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		taken <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(front.Close)
	t.Cleanup(s.Close) // first: it ends streams
	return front.URL, taken
}

// A signal that ends a call before its answer has come leaves open whether the server has accepted the
// task, and the message says so: here the server has.
func TestC1_SubmitEndsByASignalDuringItsCall(t *testing.T) {
	url, accepted := unanswered(t, memstore.New(memstore.Config{}), 0)
	for says, args := range map[string][]string{
		"the server may have accepted the task; give --unique": {"submit", "--server", url, "true"},
		"may have accepted the task; with the same --unique":   {"submit", "--server", url, "--unique", "u", "true"},
	} {
		cmd := command(t, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		start(t, cmd)
		<-accepted
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if status := finish(t, cmd); status != 130 || stdout.Len() > 0 || !strings.Contains(stderr.String(), says) {
			t.Errorf("%q ends with %d, prints %q and says %q", args, status, stdout.String(), stderr.String())
		}
	}
}

// A signal that ends a call before its answer has come leaves open whether the server has accepted the
// lines of the call, and the message says so: here the server has.
func TestC1_SubmitFromEndsByASignalDuringACall(t *testing.T) {
	store := memstore.New(memstore.Config{})
	url, accepted := unanswered(t, store, 1)
	cmd := command(t, "submit", "--from", "-", "--server", url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := startLines(t, cmd)
	if _, err := io.WriteString(in, "echo 1\n"); err != nil {
		t.Fatal(err)
	}
	out.next()
	if _, err := io.WriteString(in, "echo 2\necho 3\n"); err != nil {
		t.Fatal(err)
	}
	<-accepted
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status := finish(t, cmd)
	const says = "(submitted: 1 task of earlier lines, all or none of these lines, and no later line; give --unique-prefix"
	if status != 130 || !strings.Contains(stderr.String(), says) {
		t.Errorf("it ends with %d, and says %q", status, stderr.String())
	}
}
