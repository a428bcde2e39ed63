//go:build linux

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/shm"
)

// patience is how long a test waits for a state on a very busy machine.
const patience = time.Minute

// slotsFile is the path of slots that are this test's.
func slotsFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "slots")
}

// sem returns a stint sem command that has not been started, whose errors go to the log of
// the test.
func sem(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, append([]string{"sem", "--name"}, args...)...)
	cmd.Stderr = t.Output()
	return cmd
}

// usage waits until the state of the slots satisfies as, and returns it.
func usage(t *testing.T, path string, as func(shm.Info) bool) (info shm.Info) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); runtime.Gosched() {
		if info, err = shm.Inspect(path); err == nil && as(info) {
			return info
		}
	}
	t.Fatalf("the slots do not become as they should: %+v, %v", info, err)
	return info
}

// runsAndWaits is a condition for usage: the numbers of taken slots and of waiters.
func runsAndWaits(running, waiting int) func(shm.Info) bool {
	return func(info shm.Info) bool { return info.Slots[0].Running == running && info.Slots[0].Waiting == waiting }
}

// holder is a command that holds a slot until it is let go.
type holder struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *lines
	gate *os.File
}

// hold takes a slot and returns when the command runs. args are flags.
func hold(t *testing.T, path string, args ...string) *holder {
	t.Helper()
	h := willHold(t, path, args...)
	h.await()
	return h
}

// willHold starts a command that holds a slot once it has one.
func willHold(t *testing.T, path string, args ...string) *holder {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	cmd := sem(t, append(append([]string{path}, args...), "--", "sh", "-c", "echo held; read x; exit 0")...)
	cmd.Stdin = r
	out := startLines(t, cmd)
	r.Close()
	return &holder{t, cmd, out, w}
}

// await returns when the command runs.
func (h *holder) await() {
	h.t.Helper()
	if got := h.out.next(); got != "held" {
		h.t.Fatalf("the holder says %q", got)
	}
}

// release ends the command.
func (h *holder) release() {
	h.t.Helper()
	h.gate.Close()
	if status := finish(h.t, h.cmd); status != 0 {
		h.t.Errorf("the holder ended with %d", status)
	}
}

// gated returns a script that prints "in", waits, and prints "out". next ends the wait of
// one process that runs it.
func gated(t *testing.T) (script string, ev *lines, next func()) {
	t.Helper()
	pipe, gate := fifo(t), fifo(t)
	ev = events(t, pipe)
	out, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return "echo in > " + pipe + "; read x < " + gate + "; echo out > " + pipe, ev, func() {
		t.Helper()
		if _, err := out.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// Of twenty commands that are started together three run at a time, and all run.
func TestB8_SemIsHard(t *testing.T) {
	const all, most = 20, 3
	path := slotsFile(t)
	script, ev, next := gated(t)
	var cmds []*exec.Cmd
	for range all {
		cmd := sem(t, path, "--max", "3", script)
		start(t, cmd)
		cmds = append(cmds, cmd)
	}
	usage(t, path, runsAndWaits(most, all-most)) // all are there, so that all would run
	running, ran := 0, 0
	for left := all; left > 0; {
		for running < min(most, left) {
			if got := ev.next(); got != "in" {
				t.Fatalf("with %d running, one says %q", running, got)
			}
			running++
			ran++
		}
		next()
		if got := ev.next(); got != "out" {
			t.Fatalf("with %d running, one says %q", running, got)
		}
		running--
		left--
	}
	if ran != all {
		t.Errorf("%d ran, want %d", ran, all)
	}
	for _, cmd := range cmds {
		if status := finish(t, cmd); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
}

// The command is the process that was started: its number, its streams, its exit
// status, what it ignores as far as Go can know, and signals to it.
func TestB8_SemBecomesTheCommand(t *testing.T) {
	path := slotsFile(t)
	cmd := sem(t, path, "--", "sh", "-c", "echo $$ {} \"$@\"; cat; exit 3", "sh", "-x", ":::", "a b")
	cmd.Stdin = strings.NewReader("through\n")
	out := startLines(t, cmd)
	if got, want := out.next(), strconv.Itoa(cmd.Process.Pid)+" {} -x ::: a b"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := out.next(); got != "through" {
		t.Errorf("its input is %q", got)
	}
	if status := finish(t, cmd); status != 3 {
		t.Errorf("exit status %d, want 3", status)
	}

	cmd = ignoring(sem(t, path, "echo ready; exec sleep 1000"), "HUP INT TSTP TERM USR1")
	if got := startLines(t, cmd).next(); got != "ready" {
		t.Fatalf("it says %q", got)
	}
	for sig, want := range map[syscall.Signal]bool{
		syscall.SIGHUP: true, syscall.SIGINT: true, syscall.SIGTSTP: true, syscall.SIGTERM: false, syscall.SIGUSR1: false,
	} {
		if got := signalBit(t, cmd.Process.Pid, "SigIgn", sig); got != want {
			t.Errorf("it ignores %v: %t, want %t", sig, got, want)
		}
	}
	for _, mask := range []string{"SigBlk", "SigCgt"} {
		if signalBit(t, cmd.Process.Pid, mask, syscall.SIGTERM) {
			t.Errorf("SIGTERM is in its %s", mask)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", status)
	}
}

// The slot of a command that is killed comes back. One whose children live keeps
// it, until the last of them has ended.
func TestB8_SemKilled(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path)
	waiter := sem(t, path, "true")
	start(t, waiter)
	usage(t, path, runsAndWaits(1, 1))
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, waiter); status != 0 {
		t.Errorf("exit status %d of the waiter for the slot of a killed command", status)
	}

	pipe := fifo(t)
	ev := events(t, pipe)
	parent := sem(t, path, "sleep 1000 > /dev/null 2>&1 & echo $! > "+pipe)
	start(t, parent)
	child, err := strconv.Atoi(ev.next())
	if err != nil {
		t.Fatal(err)
	}
	if status := finish(t, parent); status != 0 {
		t.Errorf("exit status %d", status)
	}
	keeper := fmt.Sprintf("sleep[%d] (outlived sh[%d])", child, parent.Process.Pid)
	taken := "the one slot of " + path + " is taken, by " + keeper + "\n"
	stint(t, "", "sem", "--name", path, "--try", "true").want(t, "", taken, 75)
	if got, want := row(t, stint(t, "", "shm", "ls", path).stdout, fmt.Sprint(child)),
		fmt.Sprintf("%d sleep (outlived sh[%d]) slots 1 0 -", child, parent.Process.Pid); got != want {
		t.Errorf("shm ls shows %q, want %q", got, want)
	}
	waiter = sem(t, path, "true")
	start(t, waiter)
	usage(t, path, runsAndWaits(1, 1))
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, waiter); status != 0 {
		t.Errorf("exit status %d of the waiter for the slot of a child", status)
	}
}

// Commands beyond the number of processes that can have the slots open wait for a place
// without a message.
func TestB8_SemSurplus(t *testing.T) {
	const all = shm.ProcessesMax + 20
	path := slotsFile(t)
	holders := []*holder{hold(t, path, "--max", "2"), hold(t, path)}
	outs := make([]strings.Builder, all)
	var cmds []*exec.Cmd
	for i := range all {
		cmd := command(t, "sem", "--name", path, "echo", "ran")
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		start(t, cmd)
		cmds = append(cmds, cmd)
	}
	usage(t, path, func(info shm.Info) bool { return len(info.Processes) == shm.ProcessesMax })
	tried := stint(t, "", "sem", "--name", path, "--try", "true")
	for strings.Contains(tried.stderr, context.DeadlineExceeded.Error()) { // others were asking for a place just then
		tried = stint(t, "", "sem", "--name", path, "--try", "true")
	}
	tried.want(t, "", "64 processes share them, which is the maximum", 75)
	stint(t, "", "sem", "--name", path, "--wait", "30ms", "true").want(t, "", "no slot within 30ms: 2 of 2 slots", 75)
	for _, h := range holders {
		h.release()
	}
	for i, cmd := range cmds {
		if status := finish(t, cmd); status != 0 || outs[i].String() != "ran\n" {
			t.Errorf("command %d ended with %d and said %q", i, status, outs[i].String())
		}
	}
}

// inOrder passes if most of nine rounds have an order. Some may not: on a busy
// machine a process that is given a slot does not take it in time, and another gets
// it.
func inOrder(t *testing.T, want string, round func() string) {
	t.Helper()
	var others []string
	for right := 0; right < 5; {
		if got := round(); got == want {
			right++
		} else if others = append(others, got); len(others) == 5 {
			t.Fatalf("they went as %q, want %s most times", others, want)
		}
	}
}

// The highest tier goes first, whatever the order of arrival.
func TestB8_SemPriority(t *testing.T) {
	path, pipe := slotsFile(t), fifo(t)
	ev := events(t, pipe)
	inOrder(t, "2 normal low idle", func() string {
		h := hold(t, path)
		var cmds []*exec.Cmd
		for i, tier := range []string{"low", "normal", "2", "idle"} {
			cmd := sem(t, path, "--priority", tier, "echo "+tier+" > "+pipe)
			start(t, cmd)
			usage(t, path, runsAndWaits(1, i+1))
			cmds = append(cmds, cmd)
		}
		h.release()
		return went(t, cmds, ev, len(cmds))
	})
}

// went returns what commands that succeed have reported.
func went(t *testing.T, cmds []*exec.Cmd, ev *lines, n int) string {
	t.Helper()
	var pipe []string
	for range n {
		pipe = append(pipe, ev.next())
	}
	for _, cmd := range cmds {
		if status := finish(t, cmd); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
	return strings.Join(pipe, " ")
}

// If no slot is free in time, the message names the holders, and the command does not
// run.
func TestB8_SemGivesUp(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path, "--max", "1")
	holders := "by sh[" + strconv.Itoa(h.cmd.Process.Pid) + "]"
	for _, row := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--try"}, "no slot: the one slot of " + path + " is taken, " + holders},
		{[]string{"--wait", "0"}, "no slot: the one slot of "},
		{[]string{"--wait", "20ms"}, "no slot within 20ms: the one slot of " + path + " is taken, " + holders},
	} {
		args := append([]string{"sem", "--name", path}, row.flags...)
		stint(t, "", append(args, "echo", "ran")...).want(t, "", row.says, 75)
	}
	h.release()
	for _, flag := range []string{"--wait=1h", "--try"} {
		h := hold(t, path, flag)
		stint(t, "", "sem", "--name", path, "--try", "true").want(t, "", "no slot", 75)
		h.release()
	}
}

// Ctrl-C ends the wait, and nothing is left of it.
func TestB8_SemInterrupted(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path)
	var said strings.Builder
	cmd := command(t, "sem", "--name", path, "echo", "ran")
	cmd.Stdout, cmd.Stderr = &said, &said
	start(t, cmd)
	usage(t, path, runsAndWaits(1, 1))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 130 || said.String() != "" {
		t.Errorf("it ended with %d and said %q", status, said.String())
	}
	after := sem(t, path, "true")
	start(t, after)
	usage(t, path, runsAndWaits(1, 1))
	h.release()
	if status := finish(t, after); status != 0 {
		t.Errorf("exit status %d of the command that came later", status)
	}
}

// Without --max there are as many slots as there were last, or one.
func TestB8_SemMaxLeftOut(t *testing.T) {
	path := slotsFile(t)
	hold(t, path).release()
	for _, row := range []struct {
		flags []string
		want  int
	}{{nil, 1}, {[]string{"--max", "3"}, 3}, {nil, 3}, {[]string{"--max", "2"}, 2}, {nil, 2}} {
		h := hold(t, path, row.flags...)
		if got := usage(t, path, runsAndWaits(1, 0)).Slots[0].Max; got != row.want {
			t.Errorf("with %q there are %d slots, want %d", row.flags, got, row.want)
		}
		h.release()
	}
}

// Invalid arguments are refused before the wait for a slot, with a remedy.
func TestB8_SemRefuses(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path, "--max", "1")
	inUse := fmt.Sprintf("is in use with a max of 1, not 2, by sh[%d]", h.cmd.Process.Pid)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "text"), "no program")
	open := filepath.Join(dir, "open")
	write(t, open, "")
	if err := os.Chmod(open, 0o666); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	for _, row := range []struct {
		args   string
		says   string
		status int
	}{
		{"true", "a name is missing", 125},
		{"--name .. true", "not the name of slots", 125},
		{"--name io=4 true", "a name has no =", 125},
		{"--name " + path, "give a command", 125},
		{"--name " + path + " ssh example.org uptime", `sh -c '"$@"; exit $?' sh ssh example.org uptime`, 125},
		{"--name " + path + " --max 0 true", "--max 0 would let nothing run", 125},
		{"--name " + path + " --max -1 true", "from 1 to", 125},
		{"--name " + path + " --max many true", `--max "many": give a number, as in 4; see stint sem --help`, 125},
		{"--name " + path + " --wait -1s true", "--wait is negative: give 0 or more", 125},
		{"--name " + path + " --wait 1s --try true", "use one of them", 125},
		{"--name " + path + " --priority urgent true", `--priority: unknown priority "urgent": use`, 125},
		{"--name " + path + " --fast true", "see stint sem --help", 125},
		{"--name " + path + " --max 2 true", inUse, 125},
		{"--name " + path + " no-such-program", "no-such-program: executable file not found", 127},
		{"--name " + path + " " + filepath.Join(dir, "text"), "permission denied", 126},
		{"--name " + filepath.Join(dir, "not/there") + " true", "a name with a slash is the path of a file", 125},
		{"--name " + dir + " true", "a name with a slash is the path of a file", 125},
		{"--name " + open + " true", "has mode 0666", 125},
		{"--name " + strings.Repeat("x", 256) + " true", "a name can have 255 bytes", 125},
	} {
		stint(t, "", append([]string{"sem"}, strings.Fields(row.args)...)...).want(t, "", row.says, row.status)
	}
}

// A script without an interpreter is found, but cannot be run; the slot is free
// then.
func TestB8_SemCannotExec(t *testing.T) {
	path, script := slotsFile(t), filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("true\n"), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	stint(t, "", "sem", "--name", path, script).want(t, "", "a script needs a #! line", 126)
	stint(t, "", "sem", "--name", path, "--try", "sh", script).want(t, "", "", 0)
}
