//go:build linux

package main_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// hasty runs a stint that tries a server once.
func (s *served) hasty(args ...string) result {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=1ms")
	return runCmd(s.t, cmd, "")
}

// A server whose disk has too little room accepts no tasks, and says what to do. It
// answers all else, and works on what it has.
func TestC6_ServeWithoutRoom(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	runs := s.submit("--key", "mine", "echo $$ > "+pipe+"; read line < "+gate+"; echo $line")
	pid := ev.pid()
	s.kill()
	wantGone(t, []int{pid}) // or it reads the line
	s.start("--min-free", "1000000T")
	s.hasty("submit", "true").want(t, "", "--min-free", 125)
	if task := s.task(runs); task.State.Finished() {
		t.Errorf("it is %v", task.State)
	}
	write(t, gate, "on\n")
	for _, asks := range []string{"wait " + runs, "ls", "ls --key mine --json", "why " + runs, "stats", "dead ls"} {
		if r := s.hasty(strings.Fields(asks)...); r.status != 0 || r.stderr != "" {
			t.Errorf("%s: %+v", asks, r)
		}
	}
	const refused = "\ntasks are refused: "
	if r := s.hasty("stats"); !strings.Contains(r.stdout, refused) || !strings.Contains(r.stdout, "--min-free") {
		t.Errorf("stats: %+v", r)
	}
	s.hasty("pause", "--all").want(t, "all queues are paused\n", "", 0)
	s.hasty("resume", "--all").want(t, "all queues are resumed\n", "", 0)
	if r := s.hasty("logs", runs); !strings.HasSuffix(r.stdout, "on\n") || r.status != 0 {
		t.Errorf("logs: %+v", r)
	}
	s.stop()
	s.start()
	s.hasty("wait", s.submit("true")).want(t, "", "", 0)
	s.stop()
}

// A server takes no calls before its store is open: a command says so, and not that there is none.
func TestC6_ServerThatOpensItsStore(t *testing.T) {
	const says = "the server at stint-data takes no calls at present: another process uses its directory, which may be " +
		"the server that opens its store or ends, or a stint store copy;"
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "--store", "redis://"+l.Addr().String())
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent, err := l.Accept() // the server has locked its directory, and waits for the database
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s.hasty("ls").want(t, "", says, 125)
	s.kill()
	s.hasty("ls").want(t, "", "no server at stint-data: start one with stint serve", 125)

	s = serve(t)
	socket := filepath.Join(s.dir, "stint-data", "stint.sock")
	if err := os.Remove(socket); err != nil { // as before it is made
		t.Fatal(err)
	}
	s.hasty("ls").want(t, "", says, 125)
	s.hasty("ls", "--server", "stint-data/stint.sock").want(t, "", "takes no calls at present", 125)
	s.stop()
	s.hasty("ls").want(t, "", "no server at stint-data: start one with stint serve", 125)
}

// A command that cannot reach a server says so at once.
func TestC6_NoServerToWaitFor(t *testing.T) {
	s := &served{t: t, dir: t.TempDir()}
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	for _, asks := range []string{
		"wait " + id, "wait --timeout 1h " + id, "logs -f " + id, "logs " + id, "show " + id, "why " + id, "cancel " + id,
		"wait 01890a5d", "submit true", "submit --after " + id + " true", "ls", "stats", "dead ls",
	} {
		s.hasty(strings.Fields(asks)...).want(t, "", "no server at stint-data: start one with stint serve", 125)
	}
	for address, says := range map[string]string{
		"127.0.0.1:1": "give http://127.0.0.1:1", "localhost:7117": "give http://localhost:7117",
		"else:where": "no server at else:where", "http://127.0.0.1:1": "connection refused",
		"unix:none": "no server at unix:none",
	} {
		s.hasty("ls", "--server", address).want(t, "", says, 125)
	}
}

// If the server goes away while a log is followed, that is reported once.
func TestC4_FollowLogsWithoutServer(t *testing.T) {
	s := serve(t)
	pipe := fifo(t)
	ev := events(t, pipe)
	id := s.submit("echo one; echo > " + pipe + "; sleep 1000")
	ev.next()
	follow := s.command("logs", "-f", id)
	follow.Env = append(follow.Env, "STINT_PATIENCE=1ms")
	stderr, err := follow.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if got := startLines(t, follow).next(); got != "one" {
		t.Errorf("it has %q", got)
	}
	s.kill()
	const away = "stint: the server cannot be reached; output continues when it can"
	if got := (&lines{t: t, r: stderr}).next(); got != away {
		t.Errorf("it says %q", got)
	}
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, follow); status != 130 {
		t.Errorf("it ends with %d", status)
	}
}

// A log that is cut, because of its many attempts, is followed from its new beginning. The
// sizes are such that the new log stays smaller than the old one, and an attempt fits into
// the half that is shown at once.
func TestC4_FollowLogsThatAreCut(t *testing.T) {
	s := serve(t, "--output", "2000")
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("printf '%0950d\n' 0; echo > "+pipe+"; read line < "+gate+"; exit $line", "--retries", "3")
	ev.next()
	follow := s.command("logs", "-f", id)
	out := startLines(t, follow)
	zeros := strings.Repeat("0", 950)
	expect := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			if got := out.next(); !strings.HasPrefix(got, want) {
				t.Errorf("it goes on with %q, want %q", got, want)
			}
		}
	}
	again := func() {
		t.Helper()
		write(t, gate, "1\n")
		ev.next() // it runs again
	}
	expect(zeros)
	again()
	expect("[attempt 2, ", zeros)
	again()
	expect("[attempt 3, ", zeros)
	again()
	expect("[what was before this has been dropped]", "0000", "[attempt 3, ", zeros, "[attempt 4, ", zeros)
	write(t, gate, "0\n")
	if status := finish(t, follow); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	s.stop()
}

// A task without a log says what became of it, and a log that is not whole says so.
func TestC4_LogsThatAreMissing(t *testing.T) {
	s := serve(t, "--output", "4")
	never := s.submit("--", "no-such-program")
	s.stint("wait", never).want(t, "", "executable file not found", 127)
	for _, asks := range [][]string{{"logs", never}, {"logs", "-f", never}} {
		s.stint(asks...).want(t, "", "no log of task "+never+": it is dead: cannot be run: no-such-program: exec", 1)
	}
	later := s.submit("--delay", "1h", "--", "true")
	s.stint("logs", later).want(t, "", "it is scheduled\n", 1)
	s.stint("logs", "01890a5d-ac96-774b-bcce-b302099a8057").want(t, "", "not found", 1)
	much := s.submit("echo 12345678")
	s.stint("wait", much).want(t, "", "", 0)
	if r := s.stint("logs", much); r.status != 0 ||
		!strings.HasPrefix(r.stdout, "12\n[") || !strings.HasSuffix(r.stdout, "[5 bytes are missing here]\n8\n") ||
		!strings.Contains(r.stderr, "a part of the output is missing: 5 bytes in the middle") {
		t.Errorf("logs: %+v", r)
	}
	s.stop()
}

// The time of an attempt is over: wait has the status that its help names.
func TestC1_WaitForATimeout(t *testing.T) {
	s := serve(t)
	id := s.submit("--timeout", "2", "--retries", "0", "--", "sleep", "1000")
	s.stint("wait", id).want(t, "", "dead: time limit: it was not done after 2s", 124)
	s.stop()
}

// A table has one head, however many pages it is made of, and mistyped commands
// name what to do.
func TestC4_LongTables(t *testing.T) {
	const tasks = 501
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	store, err := httpstore.Open("unix:"+filepath.Join(s.dir, "stint-data", "stint.sock"), httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	q := queue.New(store, queue.Config{})
	var many []queue.NewTask
	for range tasks {
		many = append(many, q.Prepare(queue.Spec{Kind: "k"}))
	}
	if _, err := q.Submit(t.Context(), many...); err != nil {
		t.Fatal(err)
	}
	r := s.stint("ls", "-n", "0")
	if strings.Count(r.stdout, "\n") != 1+tasks || strings.Count(r.stdout, "CHANGED") != 1 || r.status != 0 {
		t.Errorf("ls: %d, %s\n%s", r.status, r.stderr, r.stdout)
	}
	r = s.stint("ls", "-n", "0", "--json")
	if strings.Count(r.stdout, "\n") != tasks || r.status != 0 {
		t.Errorf("ls: %d, %s\n%s", r.status, r.stderr, r.stdout)
	}
	for asks, says := range map[string]string{
		"ls 01890a5d": "ls takes only flags", "logs": "give the ID of one task; see stint logs --help",
		"wait": "give the ID of a task", "show a b": "give the ID of one task", "stats all": "stats takes only flags",
		"submit --stdin none true": "no such file", "submit \xff": "not text in UTF-8",
	} {
		if r := s.stint(strings.Fields(asks)...); r.status != 125 || !strings.Contains(r.stderr, says) {
			t.Errorf("%q: %+v, want it to say %q", asks, r, says)
		}
	}
	s.stop()
}

// Following a log that cannot be read ends with the reason.
func TestC6_LogThatCannotBeRead(t *testing.T) {
	s := serve(t)
	id := s.submit("echo much")
	s.hasty("wait", id).want(t, "", "", 0)
	path := filepath.Join(s.dir, "stint-data", "logs", id+".log")
	if err := errors.Join(os.Remove(path), os.Symlink("/elsewhere", path)); err != nil {
		t.Fatal(err)
	}
	for _, asks := range [][]string{{"logs", id}, {"logs", "-f", id}} {
		s.stint(asks...).want(t, "", "path escapes", 125)
	}
	s.stop()
}

// A wait for a task whose server has gone says so, and ends when the server is back.
func TestC1_WaitSaysThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := serve(t)
	cmd := s.command("wait", "--json", s.submit("true"), s.submit("sleep 3"))
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=1s")
	said, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	out := startLines(t, cmd)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out.next() // the first task; the second one is waited for
	s.kill()
	const says = "no server at stint-data"
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, says) ||
		!strings.Contains(line, "continues when the server can be reached") {
		t.Errorf("it says %q, %v", line, err)
	}
	s.start()
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
