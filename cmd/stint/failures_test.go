//go:build linux

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A timeout ends the whole process group: the pipe whose write end the grandchild holds
// ends.
func TestTimeout_EndsGrandchildren(t *testing.T) {
	for name, script := range map[string]string{
		"obedient":                        "sleep 1000 & wait",
		"ignores TERM":                    "trap '' TERM; sleep 1000 & wait; wait; wait",
		"leader ends, grandchild ignores": "(trap '' TERM; while :; do sleep 1000; done) & wait",
		"stopped":                         "kill -STOP $$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := command(t, "run", "-u", "--timeout", "100ms", "--kill-after", "50ms", "--joblog", "log",
				"-n0", script, ":::", "a")
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = w, &stderr
			// Under -u a job writes into stint's own standard error. As a pipe, it would
			// delay Wait until the job has ended.
			log, err := os.Create(filepath.Join(cmd.Dir, "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			cmd.Stderr = log
			start(t, cmd)
			w.Close()
			status := finish(t, cmd)
			if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("read %d, %v: want the end", n, err)
			}
			says := read(t, log.Name())
			if status != 1 || !strings.Contains(says, "job 1 (timed out after 100ms)") {
				t.Errorf("exit status %d: %s", status, says)
			}
			if line := read(t, filepath.Join(cmd.Dir, "log")); !strings.Contains(line, "\t124\t") {
				t.Errorf("job log: %s", line)
			}
		})
	}
}

// If the leader ends at SIGTERM, the other processes of its group have the time of
// --kill-after to save their work; the run ends as soon as they have ended.
func TestTimeout_RestOfTheGroupMaySave(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	script := "{ trap 'echo saving > " + pipe + "; read x < " + gate + "; echo saved > " + pipe + "; exit' TERM; " +
		"echo ready > " + pipe + "; while :; do sleep 1000 & wait; done; } & exec sleep 1000"
	cmd := command(t, "run", "--timeout", "300ms", "--kill-after", "10h", "-n0", script, ":::", "a")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start(t, cmd)
	for _, want := range []string{"ready", "saving"} {
		if got := ev.next(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	write(t, gate, "go\n")
	if got := ev.next(); got != "saved" {
		t.Errorf("got %q", got)
	}
	if status := finish(t, cmd); status != 1 || !strings.Contains(stderr.String(), "timed out after 300ms") {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
}

func TestTimeout_NotReached(t *testing.T) {
	stint(t, "", "run", "--timeout", "1h", "echo", ":::", "a").want(t, "a\n", "", 0)
}

func TestHalt(t *testing.T) {
	for _, row := range []struct {
		rule, script string
		stdout       string
		status       int
	}{
		{"soon,fail=1", "echo {}; exit $(({#} == 2 ? 7 : 0))", "1\n2\n", 7},
		{"soon,fail=2", "echo {}; exit $(({#} % 2))", "1\n2\n3\n", 2},
		{"soon,success=2", "echo {}", "1\n2\n", 0},
		{"now,success=1", "echo {}; [ {} = 3 ]", "1\n2\n3\n", 0},
		{"soon,done=3", "echo {}; exit $(({#} % 2))", "1\n2\n3\n", 2},
		{"soon,fail=50%", "echo {}; exit $(({#} > 2))", "1\n2\n3\n4\n", 2},
		{"now,fail=1", "echo {}; kill -9 $$", "1\n", 137},
		{"never", "echo {}; exit 1", "1\n2\n3\n4\n5\n6\n", 6},
	} {
		t.Run(row.rule, func(t *testing.T) {
			t.Parallel()
			r := stint(t, "", "run", "-j1", "-q", "--halt", row.rule, row.script, ":::", "1", "2", "3", "4", "5", "6")
			r.want(t, row.stdout, "", row.status)
		})
	}
}

// --halt now ends the running jobs: they do not count as failed, are not logged, and run
// when the run is resumed.
func TestHalt_NowEndsRunningJobs(t *testing.T) {
	pipe := fifo(t)
	script := "if [ {} = 1 ]; then echo started > " + pipe + "; test -e resumed || exec sleep 1000; " +
		"else test -e resumed || read x < " + pipe + "; exit 3; fi"
	cmd := command(t, "run", "-j2", "--halt", "now,fail=1", "--joblog", "log", script, ":::", "1", "2", "3")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start(t, cmd)
	if status := finish(t, cmd); status != 3 {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
	if !strings.Contains(stderr.String(), "stopped by --halt: 1 job done, 2 read and not done; --resume") {
		t.Errorf("says %s", stderr.String())
	}
	if got := logged(t, filepath.Join(cmd.Dir, "log")); len(got) != 1 || got[2] != 1 {
		t.Errorf("job log has %v, want job 2", got)
	}
	write(t, filepath.Join(cmd.Dir, "resumed"), "")
	keep, err := os.OpenFile(pipe, os.O_RDWR, 0) // job 1 blocks while the pipe has no reader
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	resume := command(t, "run", "--resume", "--joblog", "log", script, ":::", "1", "2", "3")
	resume.Dir = cmd.Dir
	runCmd(t, resume, "").want(t, "", "1 of 2 jobs failed; first: job 3 (exit status 3)", 1)
}

// Jobs that ignore SIGTERM are killed after the grace period.
func TestHalt_NowKillsTheDisobedient(t *testing.T) {
	pipe := fifo(t)
	script := "if [ {} = 1 ]; then trap '' TERM; echo started > " + pipe + "; while :; do sleep 1000; done; " +
		"else read x < " + pipe + "; exit 3; fi"
	cmd := command(t, "run", "-j2", "-q", "--halt", "now,fail=1", "--kill-after", "50ms", script, ":::", "1", "2")
	runCmd(t, cmd, "").want(t, "", "", 3)
}

// A run ends although jobs wait for another attempt.
func TestHalt_EndsRetries(t *testing.T) {
	cmd := command(t, "run", "-j1", "--retries", "5", "--retry-delay", "10h", "-n0", "exit 1", ":::", "1", "2")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Args = append(cmd.Args[:2], append([]string{"-t", "--progress", "none"}, cmd.Args[2:]...)...)
	cmd.Stderr = w
	start(t, cmd)
	w.Close()
	l := &lines{t: t, r: r}
	for range 2 {
		if got := l.next(); got != "stint: exit 1" {
			t.Fatal(got)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got, atWork := l.next(), "first: job 2 (exit status 1)" // the second one had not ended yet
	if strings.Contains(got, "waiting for 1 job that runs") {
		got = l.next()
	}
	if !strings.Contains(got, "0 jobs done, 2 read and not done") && !strings.Contains(got, atWork) {
		t.Error(got)
	}
	if status := finish(t, cmd); status != 128+int(syscall.SIGTERM) && !strings.Contains(got, atWork) {
		t.Errorf("exit status %d", status)
	}
}
