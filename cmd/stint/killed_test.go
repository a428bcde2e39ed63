//go:build linux

package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watcherOf waits until the process that watches over a run is there and
// listens, and returns its number.
func watcherOf(t *testing.T, pid int) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		for _, child := range children(t, pid) {
			// It ignores INT (bit 1 of the mask) once it does what it is there for.
			if strings.Contains(proc(child, "cmdline"), "__watch-jobs") && signalBit(t, child, "SigIgn", syscall.SIGINT) {
				return child
			}
		}
	}
	t.Fatal("no process watches over the run")
	return 0
}

// children are the processes that any thread of a process has started.
func children(t *testing.T, pid int) (found []int) {
	t.Helper()
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, child)
		}
	}
	return found
}

// proc is a file about a process; nothing if that has gone.
func proc(pid int, file string) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	return string(text)
}

// signalBit looks a signal up in a mask of /proc/PID/status.
func signalBit(t *testing.T, pid int, mask string, sig syscall.Signal) bool {
	t.Helper()
	for line := range strings.Lines(proc(pid, "status")) {
		if digits, ok := strings.CutPrefix(line, mask+":"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return bits>>(sig-1)&1 == 1
		}
	}
	return false
}

// gone reports whether a process has ended. A process without a parent that reaps it, as
// in a container without an init, stays as a zombie.
func gone(pid int) bool {
	_, rest, _ := strings.Cut(proc(pid, "stat"), ") ")
	return rest == "" || rest[0] == 'Z' || rest[0] == 'X'
}

// wantGone waits for processes to end.
func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if pids = slices.DeleteFunc(pids, gone); len(pids) == 0 {
			return
		}
	}
	for _, pid := range pids {
		t.Errorf("process %d still runs: %q", pid, proc(pid, "cmdline"))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// family returns a job of three generations, all of which ignore the signals that can be
// ignored, and report their process IDs: a script in a file, so that it needs no quoting.
func family(t *testing.T, pipe string) (script string) {
	t.Helper()
	script = filepath.Join(t.TempDir(), "family")
	write(t, script, `trap '' TERM HUP INT
(sh -c 'echo $$ > `+pipe+`; sleep 1000; sleep 1000' & echo $! > `+pipe+`; sleep 1000; sleep 1000) &
echo $$ > `+pipe+`
echo $! > `+pipe+`
wait`)
	return script
}

// startFamilies starts stint with two jobs, and returns the numbers of all
// processes that these consist of.
func startFamilies(t *testing.T, args ...string) (stint int, pids []int, wait func() int) {
	t.Helper()
	pipe := fifo(t)
	ev := events(t, pipe)
	args = append([]string{"run", "-j2", "--progress", "none"}, args...)
	cmd := command(t, append(args, "-n0", "sh", family(t, pipe), ":::", "1", "2")...)
	start(t, cmd)
	for range 2 * 4 { // one of them is pipe twice
		pid, err := strconv.Atoi(ev.next())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	if len(pids) < 2*3 {
		t.Fatalf("the jobs reported %v", pids)
	}
	return cmd.Process.Pid, pids, func() int { return finish(t, cmd) }
}

// When stint is killed all processes of its jobs end, whatever they ignore, so
// that a resumed run does not start jobs while they still run.
func TestKilled_TakesWholeGroupsAlong(t *testing.T) {
	for _, flags := range [][]string{{}, {"-u"}, {"--line-buffer"}} {
		stint, pids, wait := startFamilies(t, flags...)
		watcher := watcherOf(t, stint)
		if err := syscall.Kill(stint, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if status := wait(); status != 137 {
			t.Errorf("exit status %d", status)
		}
		wantGone(t, append(pids, watcher))
	}
}

// The watcher, which keeps the slots of stint, waits for processes that go on after SIGKILL, as one
// does that frees much memory.
func TestKilled_WatcherWaitsForTheProcesses(t *testing.T) {
	const bytes = 150 << 20
	job := fmt.Sprintf("{ head -c %d /dev/zero; sleep 1000; } | tail", bytes)
	cmd := command(t, "run", "--progress", "none", "-n0", job, ":::", "1")
	start(t, cmd)
	watcher := watcherOf(t, cmd.Process.Pid)
	var tail int
	for deadline := time.Now().Add(30 * time.Second); tail == 0; {
		for _, job := range children(t, cmd.Process.Pid) {
			for _, pid := range append(children(t, job), job) {
				if strings.HasPrefix(proc(pid, "cmdline"), "tail") && resident(proc(pid, "status")) > bytes/2 {
					tail = pid
				}
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the job takes no memory")
		}
	}
	if err := syscall.Kill(cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	finish(t, cmd)
	for deadline := time.Now().Add(30 * time.Second); !gone(watcher); {
		if time.Now().After(deadline) {
			t.Fatal("the watcher does not end")
		}
	}
	if !gone(tail) {
		t.Error("the watcher has ended before the process that it killed")
	}
	wantGone(t, []int{tail})
}

// resident returns the memory in bytes of a process with this status.
func resident(status string) int {
	_, rest, _ := strings.Cut(status, "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, _ := strconv.Atoi(fields[0])
	return kilobytes << 10
}

// What ends or stops stint's group, or its terminal's, leaves the watcher alone.
func TestKilled_WatcherSurvivesSignals(t *testing.T) {
	stint, pids, wait := startFamilies(t)
	watcher := watcherOf(t, stint)
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		if !signalBit(t, watcher, "SigIgn", sig) {
			t.Errorf("the watcher does not ignore %v", sig)
		}
	}
	if group, err := syscall.Getpgid(watcher); err != nil || group != watcher {
		t.Errorf("the watcher's group is %d, %v: want one of its own", group, err)
	}
	if err := syscall.Kill(stint, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait()
	wantGone(t, pids)
}

// The watcher holds no files of stint: a reader of stint's output sees its end, and a
// lock held by stint's shell is released. Jobs inherit no files of the watcher either.
func TestKilled_WatcherHoldsNoFilesOfStint(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-n0", "{ ls -l /proc/self/fd; echo end; } > "+pipe+"; read x < "+gate, ":::", "a")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = w, w, w, []*os.File{w}
	start(t, cmd)
	w.Close()
	var job []string
	for line := ev.next(); line != "end"; line = ev.next() {
		job = append(job, line)
	}
	watcher := watcherOf(t, cmd.Process.Pid)
	if both := held(t, watcher, job); len(both) > 0 {
		t.Errorf("the job and the watcher both have %s", both)
	}
	write(t, gate, "go\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	if proc(watcher, "stat") != "" {
		t.Error("the watcher is still there after the run")
	}
}

// held returns what the watcher and a job both have open besides the null device.
// The watcher closes what it was given, one after the other: it has time for that.
func held(t *testing.T, watcher int, job []string) (both []string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		fds, err := filepath.Glob("/proc/" + strconv.Itoa(watcher) + "/fd/*")
		if err != nil || len(fds) == 0 {
			t.Fatalf("descriptors of process %d: %v, %v", watcher, fds, err)
		}
		both = nil
		for _, fd := range fds {
			file, err := os.Readlink(fd)
			if err != nil || file == os.DevNull {
				continue
			}
			if slices.ContainsFunc(job, func(line string) bool { return strings.HasSuffix(line, " -> "+file) }) {
				both = append(both, file)
			}
		}
		if len(both) == 0 {
			return nil
		}
	}
	return both
}

// Starting the watcher by hand only prints a message.
func TestKilled_WatcherByHand(t *testing.T) {
	stint(t, "", "__watch-jobs").want(t, "", "stint starts this process by itself", 125)
}
