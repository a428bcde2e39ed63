//go:build linux

package main_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/queue"
)

// serveWith starts a server with a limit of open files.
func serveWith(t *testing.T, files int, flags ...string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = limited(t, s.command(append([]string{"serve"}, flags...)...), files)
	s.cmd.Stderr = t.Output()
	s.out = startLines(t, s.cmd)
	s.out.next()
	return s
}

// Idle connections do not keep commands from running, and further clients get an error at
// once.
func TestC2_FloodOfIdleClients(t *testing.T) {
	s := serveWith(t, 100, "-j4")
	pipe := fifo(t)
	ev := events(t, pipe)
	var ids []string
	for range 8 {
		ids = append(ids, s.submit("--delay", "1s", "--", "sh", "-c", "ulimit -Sn > files"))
	}
	var after []string
	for _, id := range ids {
		after = append(after, "--after", id)
	}
	last := s.submit(append(after, "echo done > "+pipe)...)
	var idle []net.Conn
	socket := filepath.Join(s.dir, "stint-data", "stint.sock")
	for range 200 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	ls := s.command("ls")
	ls.Env = append(ls.Env, "STINT_PATIENCE=1s")
	r := runCmd(t, ls, "")
	if r.status != 125 || !strings.Contains(r.stderr, "ulimit -n") {
		t.Errorf("with 200 idle clients, ls says %+v", r)
	}
	ev.next() // all commands have run, beside the idle clients
	for _, conn := range idle {
		_ = conn.Close()
	}
	s.stint("wait", last).want(t, "", "", 0)
	for _, id := range ids {
		if task := s.task(id); strings.Join(on(&task), " ") != "submit due claim succeed" {
			t.Errorf("a task's steps are %v", on(&task))
		}
	}
	if got := strings.TrimSpace(read(t, filepath.Join(s.dir, "files"))); got != "100" {
		t.Errorf("a command may have %s open files, want those of the server, 100", got)
	}
	s.stop()
}

// A server without descriptors releases its tasks, keeps its store, and goes on when it
// has some again.
func TestC2_ServerWithoutDescriptors(t *testing.T) {
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "-j2")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = startLines(t, s.cmd)
	s.out.next()
	s.stint("wait", s.submit("--", "true")).want(t, "", "", 0) // what is started once has been
	var ids []string
	for range 5 {
		ids = append(ids, s.submit("--delay", "1s", "--", "true"))
	}
	limit(t, s.cmd.Process.Pid, 3) // of which it has all
	for log := bufio.NewScanner(stderr); ; {
		if !log.Scan() {
			t.Fatal("the log does not say that the server is short of something")
		}
		if text := log.Text(); strings.Contains(text, "short of") {
			if !strings.Contains(text, "ulimit -n") {
				t.Errorf("the log says %q, without a remedy", text)
			}
			break
		}
	}
	limit(t, s.cmd.Process.Pid, 1000)
	go func() { _, _ = bufio.NewReader(stderr).WriteTo(t.Output()) }()
	s.stint(append([]string{"wait"}, ids...)...).want(t, "", "", 0)
	back := 0
	for _, id := range ids {
		task := s.task(id)
		if task.State != queue.Succeeded || task.Failures != 0 {
			t.Errorf("a task is %v after %d failures", task.State, task.Failures)
		}
		back += strings.Count(strings.Join(on(&task), " "), "give_back")
	}
	if back == 0 {
		t.Error("no task was released")
	}
	s.stint("wait", s.submit("--", "true")).want(t, "", "", 0)
	s.stop()
}

// If the server returns a task to the queue, why says what it lacked.
func TestC4_WhyNamesAShortage(t *testing.T) {
	s := serve(t)
	if err := os.RemoveAll(filepath.Join(s.dir, "stint-data", "logs")); err != nil {
		t.Fatal(err)
	}
	id := s.submit("true")
	said := ""
	for range 600 { // the task is tried again and again, and is running for some milliseconds each time
		said = s.stint("why", id).stdout
		if strings.Contains(said, " ago: ") && strings.Contains(said, "the directory was removed; start the server again") {
			break
		}
	}
	if !strings.Contains(said, "a worker returned it to the queue ") {
		t.Errorf("why says %s", said)
	}
	s.stop()
}

// limit sets how many descriptors a process may have.
func limit(t *testing.T, pid, files int) {
	t.Helper()
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(files), Max: 1 << 12}, nil); err != nil {
		t.Fatal(err)
	}
}
