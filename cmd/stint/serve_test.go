//go:build linux

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/queue"
)

// served is a directory that a stint serves.
type served struct {
	t   *testing.T
	dir string // where commands are given, with stint-data in it
	cmd *exec.Cmd
	out *lines // of the server
	// program is another build of stint to run; "" is that of the tests.
	program string
}

// serve starts a server in a directory of its own, and waits until it answers.
func serve(t *testing.T, flags ...string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	s.start(flags...)
	return s
}

func (s *served) start(flags ...string) {
	s.t.Helper()
	s.cmd = s.command(append([]string{"serve", "-j2"}, flags...)...)
	s.cmd.Stderr = s.t.Output()
	s.out = startLines(s.t, s.cmd)
	if line := s.out.next(); line != "serving unix:stint-data/stint.sock" {
		s.t.Fatalf("the server says %q", line)
	}
}

// command returns a stint command in the directory that has not been started.
func (s *served) command(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := command(s.t, args...)
	cmd.Dir = s.dir
	if s.program != "" {
		cmd.Path, cmd.Args[0] = s.program, s.program
	}
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=60s", "USER=tester")
	return cmd
}

// stint runs a stint in the directory.
func (s *served) stint(args ...string) result {
	s.t.Helper()
	return runCmd(s.t, s.command(args...), "")
}

// submit submits a command and returns the ID of its task.
func (s *served) submit(args ...string) string {
	s.t.Helper()
	r := s.stint(append([]string{"submit"}, args...)...)
	if r.status != 0 || !taskID.MatchString(r.stdout) {
		s.t.Fatalf("submit %q: %+v", args, r)
	}
	return strings.TrimSpace(r.stdout)
}

var taskID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`)

// shown is a task as stint prints it in JSON.
type shown struct {
	queue.Task
	Payload    json.RawMessage `json:"payload"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	Result     json.RawMessage `json:"result"`
	Command    struct {
		Script, Dir string
		Args, Env   []string
		StdinBytes  int    `json:"stdin_bytes"`
		Stdin       []byte `json:"stdin_base64"`
	}
	ExitStatus *int `json:"exit_status"`
}

// task is a task as the server knows it.
func (s *served) task(id string, flags ...string) (t shown) {
	s.t.Helper()
	r := s.stint(append([]string{"show", "--json", id}, flags...)...)
	if err := json.Unmarshal([]byte(r.stdout), &t); err != nil || r.status != 0 {
		s.t.Fatalf("show %s: %+v, %v", id, r, err)
	}
	return t
}

// kill kills the server.
func (s *served) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	finish(s.t, s.cmd)
}

// stop signals the server to end, and waits until it has.
func (s *served) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if status := finish(s.t, s.cmd); status != 0 {
		s.t.Errorf("the server ends with %d", status)
	}
}

// on returns what the steps of a task were.
func on(t *shown) (steps []string) {
	for _, step := range t.Steps {
		steps = append(steps, step.On.String())
	}
	return steps
}

// The server is killed while a command runs. The command ends with it, and begins
// again when the server is started again.
func TestC6_ServeKilled(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("echo begun; echo $$ > " + pipe + "; read line < " + gate + "; echo $line > out; echo ended")
	later := s.submit("--after", id, "--", "cp", "out", "copy")
	pid := ev.pid()
	for s.stint("logs", id).stdout != "begun\n" { // what is on its way there is lost
	}
	s.kill()
	wantGone(t, []int{pid})
	s.start()
	ev.next() // it has begun again
	write(t, gate, "finished\n")
	s.stint("wait", id, later).want(t, "", "", 0)
	if got := read(t, filepath.Join(s.dir, "copy")); got != "finished\n" {
		t.Errorf("the copy of its output is %q", got)
	}
	task := s.task(id)
	if got := strings.Join(on(&task), " "); got != "submit claim lose claim succeed" || task.Failures != 0 {
		t.Errorf("its steps are %s, after %d failures", got, task.Failures)
	}
	r := s.stint("logs", id)
	if !regexp.MustCompile(`^begun\n\[attempt 2, [-0-9T:Z+]+\]\nbegun\nended\n$`).MatchString(r.stdout) {
		t.Errorf("its log is %q", r.stdout)
	}
	s.stop()
}

// A command that kills the server each time that it runs is recognised and put
// aside, and the same command submitted again as well. Others are done.
func TestC9_CommandThatKillsTheServer(t *testing.T) {
	s := serve(t)
	poison := s.submit("--", "sh", "-c", "kill -9 $PPID; sleep 1000")
	for range 2 {
		if status := finish(t, s.cmd); status != 137 {
			t.Fatalf("the server ends with %d", status)
		}
		s.start()
	}
	if status := finish(t, s.cmd); status != 137 {
		t.Fatalf("the server ends with %d", status)
	}
	s.start()
	sound := s.submit("--", "true")
	s.stint("wait", sound).want(t, "", "", 0)
	r := s.stint("wait", poison)
	if r.status != 1 || !strings.Contains(r.stderr, "dead") {
		t.Errorf("wait for it: %+v", r)
	}
	if task := s.task(poison); task.State != queue.Dead || task.Crashes != 3 {
		t.Errorf("it is %v after %d crashes", task.State, task.Crashes)
	}
	again := s.submit("--", "sh", "-c", "kill -9 $PPID; sleep 1000")
	if task := s.task(again); task.State != queue.Dead || len(task.Steps) != 1 {
		t.Errorf("the same again is %v, by %v", task.State, on(&task))
	}
	s.stop()
}

// After SIGTERM the server waits for running commands, and answers calls meanwhile.
// Commands that take longer are ended, and begin again at the next start.
func TestC5_ServeEnds(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	short := s.submit("echo > " + pipe + "; read line < " + gate)
	ev.next()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waiting := s.submit("--", "true") // is accepted and not begun
	if task := s.task(short); task.State != queue.Running {
		t.Errorf("while the server waits for it, it is %v", task.State)
	}
	write(t, gate, "go\n")
	if status := finish(t, s.cmd); status != 0 {
		t.Errorf("the server ends with %d", status)
	}
	s.start("--grace", "50ms", "--kill-after", "50ms")
	s.stint("wait", short, waiting).want(t, "", "", 0)
	if task := s.task(short); strings.Join(on(&task), " ") != "submit claim succeed" {
		t.Errorf("its steps are %v", on(&task))
	}
	long := s.submit("trap '' TERM; echo > " + pipe + "; sleep 1000")
	ev.next()
	s.stop()
	s.start()
	if task := s.task(long); task.Steps[2].On != queue.OnRelease || task.Failures+task.Crashes != 0 {
		t.Errorf("its steps are %v, after %d failures and %d crashes", on(&task), task.Failures, task.Crashes)
	}
	ev.next()
	s.endTwice(ev, long)
}

// A server that is stopped at once reports what is left only if something is.
func TestC5_StopAtOnceLeavesNothing(t *testing.T) {
	s := serve(t)
	pipe := fifo(t)
	ev := events(t, pipe)
	s.submit("echo > " + pipe + "; exec sleep 1000")
	ev.next()
	s.kill()
	s.cmd = s.command("serve", "--grace", "1h")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, s.cmd)
	ev.next()
	said, line := lines{t: t, r: stderr}, ""
	for _, says := range []string{"again to stop at once", "stopped at once"} {
		if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for line = said.next(); !strings.Contains(line, says); line = said.next() {
		}
	}
	if status := finish(t, s.cmd); status != 130 || strings.Contains(line, "canceled") {
		t.Errorf("it ends with %d, and says %q", status, line)
	}
}

// endTwice signals the server twice while a task ignores SIGTERM. It sends the second
// signal after the server has reported the first: two at once would be one.
func (s *served) endTwice(ev *lines, id string) {
	s.t.Helper()
	s.kill()
	s.cmd = s.command("serve", "--grace", "1h")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	start(s.t, s.cmd)
	ev.next()
	said := lines{t: s.t, r: stderr}
	for _, says := range []string{"again to stop at once", "begins again at the next start"} {
		if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
			s.t.Fatal(err)
		}
		for !strings.Contains(said.next(), says) {
		}
	}
	if status := finish(s.t, s.cmd); status != 130 {
		s.t.Errorf("the server ends with %d", status)
	}
	s.start("--kill-after", "50ms")
	ev.next()
	task := s.task(id)
	if task.State != queue.Running || task.Failures != 0 {
		s.t.Errorf("it is %v after %d failures: %v", task.State, task.Failures, on(&task))
	}
	s.stint("cancel", "--wait", id).want(s.t, "1 task cancelled\n", "", 0)
	s.stint("wait", id).want(s.t, "", "cancelled", 130)
	s.stop()
}

// A directory belongs to one server, and the message says what to do. A file
// that is not a socket is not overwritten.
func TestC6_ServeAlone(t *testing.T) {
	s := serve(t)
	r := s.hasty("serve")
	if r.status != 125 || !strings.Contains(r.stderr, "has it open") {
		t.Errorf("a second server: %+v", r)
	}
	s.stop()
	path := filepath.Join(s.dir, "stint-data", "stint.sock")
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left behind")
	}
	write(t, path, "precious")
	r = s.stint("serve")
	if r.status != 125 || !strings.Contains(r.stderr, "is not a socket") || read(t, path) != "precious" {
		t.Errorf("a file in the way: %+v", r)
	}
	for _, wrong := range [][]string{
		{"--listen", "0.0.0.0:0"},
		{"--listen", "127.0.0.1"},
		{"-j", "many"},
		{"--memory", "much"},
		{"--grace", "0"},
		{"--dir", path},
	} {
		if r := s.stint(append([]string{"serve"}, wrong...)...); r.status != 125 || strings.Count(r.stderr, "\n") > 2 {
			t.Errorf("%v: %+v", wrong, r)
		}
	}
}

// The socket of a killed server is replaced, no other user may use that of a running
// server, and a path that is too long for a socket works.
func TestC6_ServeSockets(t *testing.T) {
	s := serve(t)
	s.kill()
	s.start()
	for path, want := range map[string]os.FileMode{
		"stint-data": 0o700 | os.ModeDir, "stint-data/logs": 0o700 | os.ModeDir,
		"stint-data/stint.sock": 0o600 | os.ModeSocket,
	} {
		info, err := os.Lstat(filepath.Join(s.dir, path))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	s.stop()
	deep := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	s.cmd = s.command("serve", "--dir", deep+"data", "--listen", "127.0.0.1:0")
	out := startLines(t, s.cmd)
	out.next()
	address, _ := strings.CutPrefix(out.next(), "serving ")
	for _, server := range []string{deep + "data", address} {
		cmd := s.command("stats", "--json", "--server", server)
		cmd.Env = append(cmd.Env, "STINT_TOKEN_FILE="+deep+"data/token")
		r := runCmd(t, cmd, "")
		if r.status != 0 || !json.Valid([]byte(r.stdout)) {
			t.Errorf("stats of %s: %+v", server, r)
		}
	}
	s.stop()
}

// What a command finds in its environment besides that of the server is what the
// documentation says, and --env cannot change it.
func TestC6_ServeEnvironment(t *testing.T) {
	doc, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, cell := range regexp.MustCompile("(?m)^\\| `STINT_[^|]+").FindAllString(string(doc), -1) {
		want = append(want, regexp.MustCompile("STINT_[A-Z]+").FindAllString(cell, -1)...)
	}
	s := serve(t)
	id := s.submit("--env", "STINT_SLOT=mine", "--env", "STINT_TASK=mine", "env")
	s.stint("wait", id)
	own := s.command().Env
	var got []string
	for line := range strings.Lines(s.stint("logs", id).stdout) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "STINT_") && !slices.Contains(own, line) {
			got = append(got, name)
			if value == "" || value == "mine" {
				t.Errorf("%s is %q", name, value)
			}
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the environment has %q, and the documentation %q", got, want)
	}
	s.stop()
}
