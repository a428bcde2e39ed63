//go:build linux

package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// An interrupt stops starting, reaches the jobs, and waits for what they still
// do; stint then ends by the same signal. What was ended so is not in the job
// log, and a resumed run does it.
func TestSignals_FirstIsPassedOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			pipe, gate := fifo(t), fifo(t)
			ev := events(t, pipe)
			// Job 1 needs a moment to end and then succeeds; job 2 just ends.
			// (A shell's background processes ignore INT, so it ends its own.)
			script := "echo started > " + pipe + "; [ {} = 1 ] || exec sleep 1000; " +
				"trap 'kill -9 $!; read x < " + gate + "; echo saved; exit 0' INT TERM HUP; " +
				"echo trapped > " + pipe + "; sleep 1000 & wait"
			cmd := command(t, "run", "-j2", "--joblog", "log", script, ":::", "1", "2", "3")
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			start(t, cmd)
			for range 3 {
				ev.next()
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			write(t, gate, "go\n") // blocks until job 1 has got the signal
			if status := finish(t, cmd); status != 128+int(sig) {
				t.Errorf("exit status %d, want %d", status, 128+int(sig))
			}
			result{stdout.String(), stderr.String(), 0}.want(t, "saved\n", "1 job done, 2 read and not done; --resume", 0)
			if got := logged(t, filepath.Join(cmd.Dir, "log")); len(got) != 1 || got[1] != 1 {
				t.Errorf("job log has %v, want job 1", got)
			}
		})
	}
}

// A second signal kills at once, also what ignores the first.
func TestSignals_SecondKills(t *testing.T) {
	pipe := fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-n0", "trap 'echo ignored > "+pipe+"' INT; trap '' TERM; echo started > "+pipe+
		"; while :; do sleep 1000 & wait; done", ":::", "a")
	start(t, cmd)
	for _, want := range []string{"started", "ignored"} {
		if got := ev.next(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	if status := finish(t, cmd); status != 128+int(syscall.SIGINT) {
		t.Errorf("exit status %d", status)
	}
}

// Output without a reader, and a named pipe without a reader, keep stint from ending
// after the second signal; a third ends it.
func TestSignals_ThirdEnds(t *testing.T) {
	for name, row := range map[string]struct {
		flags  []string
		script string // of jobs 1, 2 and 3; the last that runs writes a line to {EV}
		first  bool   // the output is written after the first signal
	}{
		"named pipe": {flags: []string{"-j2", "--stdout", "{}"}, script: "[ {} = 1 ] || echo > {EV}"},
		"output":     {flags: []string{"-j1"}, script: "echo {} > {EV}; head -c 1000000 /dev/zero"},
		"ordered output": {
			flags: []string{"-j2", "-k"}, first: true,
			script: "case {} in 1) exec sleep 1000;; 2) head -c 1000000 /dev/zero;; 3) echo > {EV};; esac",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := fifo(t)
			ev := events(t, pipe)
			args := append([]string{"run", "--progress", "none"}, row.flags...)
			args = append(args, strings.ReplaceAll(row.script, "{EV}", pipe), ":::", "1", "2", "3")
			cmd := command(t, args...)
			if err := syscall.Mkfifo(filepath.Join(cmd.Dir, "1"), 0o600); err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd.Stdout, cmd.Stderr = w, w
			start(t, cmd)
			w.Close()
			ev.next()
			signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
			if row.first {
				sendAll(t, cmd, signals[:1])
				signals = signals[1:]
			}
			for name != "named pipe" && unread(t, r) < 1<<14 { // in the middle of 1 MB
				runtime.Gosched()
			}
			sendAll(t, cmd, signals)
			// Of signals that are pending together any may be the first.
			if status := finish(t, cmd); status != 143 && status != 130 && status != 129 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// An error of the output is reported, too, if a signal ends the run.
func TestSignals_OutputFails(t *testing.T) {
	pipe := fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-n0", "trap 'echo last words; kill $!; exit 0' TERM; sleep 1000 & echo started > "+pipe+
		"; wait", ":::", "a")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = full, &stderr
	start(t, cmd)
	ev.next()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", status)
	}
	if !strings.Contains(stderr.String(), "no space left on device") {
		t.Errorf("standard error is\n%s", stderr.String())
	}
}

// sendAll sends different signals, so that none of them is merged with another one that is
// pending.
func sendAll(t *testing.T, cmd *exec.Cmd, signals []syscall.Signal) {
	t.Helper()
	for _, sig := range signals {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
}

// Under nohup a hang-up changes nothing.
func TestSignals_IgnoredHangUpStaysIgnored(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := ignoring(command(t, "run", "-n0", "echo started > "+pipe+"; read x < "+gate, ":::", "a"), "HUP")
	start(t, cmd)
	ev.next()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	write(t, gate, "go\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// These tests say the same under nohup.
func TestSignals_TestsUnderNoHangUp(t *testing.T) {
	cmd := ignoring(command(t, "-test.run", "^TestSignals_FirstIsPassedOn$"), "HUP INT")
	cmd.Env = append(cmd.Env, asStint+"=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// ignoring has cmd ignore signals from its start.
func ignoring(cmd *exec.Cmd, signals string) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", "trap '' " + signals + "; exec \"$@\"", "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return cmd
}

// Stopped, the jobs stop too, and go on together.
func TestSignals_StopAndContinue(t *testing.T) {
	pipe := fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-n0", "echo $$ > "+pipe+"; read x < "+pipe+".2; echo end > "+pipe, ":::", "a")
	if err := syscall.Mkfifo(pipe+".2", 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	job, err := strconv.Atoi(ev.next())
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, job, "T") // it has the signal already
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	write(t, pipe+".2", "go\n")
	if got := ev.next(); got != "end" {
		t.Error(got)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// waitState waits until a process is in a state, as /proc shows it.
func waitState(t *testing.T, pid int, state string) {
	t.Helper()
	for {
		stat := read(t, "/proc/"+strconv.Itoa(pid)+"/stat")
		_, rest, _ := strings.Cut(stat, ") ")
		if strings.HasPrefix(rest, state) {
			return
		}
	}
}

// The number of jobs changes while they run: by signals, as in xargs, and by a
// file.
func TestResize_BySignal(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-j1", "echo {%} > "+pipe+"; read x < "+gate, ":::", "1", "2", "3", "4", "5")
	start(t, cmd)
	if got := ev.next(); got != "1" {
		t.Fatalf("the first job has slot %s", got)
	}
	for _, want := range []string{"2", "3"} {
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if got := ev.next(); got != want {
			t.Errorf("after one more job: slot %s, want %s", got, want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	holdOpen(t, gate)
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestResize_ByFile(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-j@jobs", "echo {%} > "+pipe+"; read x < "+gate, ":::", "1", "2", "3", "4")
	write(t, filepath.Join(cmd.Dir, "jobs"), "1\n")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start(t, cmd)
	if got := ev.next(); got != "1" {
		t.Fatalf("the first job has slot %s", got)
	}
	write(t, filepath.Join(cmd.Dir, "jobs"), "+x\n") // a mistake changes nothing
	write(t, filepath.Join(cmd.Dir, "jobs"), "003\n")
	got := []string{ev.next(), ev.next()} // both at once
	if slices.Sort(got); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("slots %v, want 2 and 3", got)
	}
	holdOpen(t, gate)
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
}

// A missing file is reported once, and followed again when it is back.
func TestResize_FileGone(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-j@jobs", "--progress", "none", "echo {%} > "+pipe+"; read x < "+gate, ":::", "1", "2", "3")
	jobs := filepath.Join(cmd.Dir, "jobs")
	write(t, jobs, "1\n")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stderr = w
	start(t, cmd)
	w.Close()
	ev.next()
	says := &lines{t: t, r: r}
	if err := os.Remove(jobs); err != nil {
		t.Fatal(err)
	}
	if got := says.next(); !strings.Contains(got, "the number of jobs stays as it is: stat jobs: no such file") {
		t.Errorf("stint says %q", got)
	}
	write(t, jobs+".new", "2\n") // one that is half written would be reported too
	if err := os.Rename(jobs+".new", jobs); err != nil {
		t.Fatal(err)
	}
	if got := ev.next(); got != "2" {
		t.Errorf("the next job has slot %s", got)
	}
	holdOpen(t, gate)
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("then stint says %q, %v", rest, err)
	}
}
