//go:build linux

package main_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/shm"
)

// Runs and single commands draw on the same slots; -j is the most of one run.
func TestB8_RunSharedIsHard(t *testing.T) {
	const most = 3
	path := slotsFile(t)
	script, ev, next := gated(t)
	shared := "--shared=" + path + "=3"
	cmds := []*exec.Cmd{
		sem(t, path, "--max", "3", script),
		command(t, "run", "-j1", shared, "-n0", script, ":::", "1", "2", "3", "4"),
		command(t, "run", "-j9", shared, "-n0", script, ":::", "1", "2", "3", "4", "5"),
	}
	const all = 1 + 4 + 5
	for _, cmd := range cmds {
		cmd.Stderr = t.Output()
		start(t, cmd)
	}
	usage(t, path, func(info shm.Info) bool {
		return len(info.Processes) == len(cmds) && info.Slots[0].Running == most && info.Slots[0].Waiting > 0
	})
	for running, done := 0, 0; done < all; {
		switch got := ev.next(); {
		case got == "in" && running < most:
			running++
			next() // one of them ends
		case got == "out":
			running--
			done++
		default:
			t.Fatalf("with %d running, one says %q", running, got)
		}
	}
	for _, cmd := range cmds {
		if status := finish(t, cmd); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
}

// However many slots there are, a run uses as many as -j says.
func TestB8_RunSharedJobs(t *testing.T) {
	path, pipe, gate := slotsFile(t), fifo(t), fifo(t)
	ev := events(t, pipe)
	script := "echo {%} > " + pipe + "; read x < " + gate
	cmd := command(t, "run", "-j2", "--shared", path+"=5", script, ":::", "1", "2", "3", "4")
	start(t, cmd)
	slots := []string{ev.next(), ev.next()}
	usage(t, path, runsAndWaits(2, 2))
	holdOpen(t, gate)
	for range 2 {
		slots = append(slots, ev.next())
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if all := strings.Join(slots, ""); strings.Trim(all, "12") != "" {
		t.Errorf("jobs ran on the slots %s of -j2", all)
	}
}

// The tiers of jobs count over all processes.
func TestB8_RunSharedPriorities(t *testing.T) {
	path, pipe := slotsFile(t), fifo(t)
	ev := events(t, pipe)
	inOrder(t, "high normal low lowest", func() string {
		h := hold(t, path)
		var cmds []*exec.Cmd
		for i, tiers := range [][]string{{"low", "normal"}, {"high", "lowest"}} {
			args := []string{"run", "-j1", "--shared", path, "--priority", "{}", "echo {} > " + pipe, ":::"}
			cmd := command(t, append(args, tiers...)...)
			cmd.Stderr = t.Output()
			start(t, cmd)
			usage(t, path, runsAndWaits(1, 2*(i+1)))
			cmds = append(cmds, cmd)
		}
		h.release()
		return went(t, cmds, ev, 4)
	})
}

// When a run is killed its jobs are, and its slots come back then and not before.
func TestB8_RunSharedKilled(t *testing.T) {
	path := slotsFile(t)
	run, pids, wait := startFamilies(t, "--shared", path+"=2")
	watcher := watcherOf(t, run)
	waiter := sem(t, path, "true")
	start(t, waiter)
	usage(t, path, runsAndWaits(2, 1))
	for _, kill := range []struct {
		pid int
		sig syscall.Signal
	}{{watcher, syscall.SIGSTOP}, {run, syscall.SIGKILL}} {
		if err := syscall.Kill(kill.pid, kill.sig); err != nil {
			t.Fatal(err)
		}
	}
	wait()
	stint(t, "", "sem", "--name", path, "--wait", "100ms", "true").want(t, "", "2 of 2 slots", 75)
	if err := syscall.Kill(watcher, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, waiter); status != 0 {
		t.Errorf("exit status %d of the waiter for a slot of the run", status)
	}
	wantGone(t, append(pids, watcher))
}

// A run that was interrupted does not wait for slots that others have.
func TestB8_RunSharedInterrupted(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path)
	cmd := command(t, "run", "-j2", "--lookahead", "3", "--shared", path, "-n0", "echo ran")
	cmd.Stdin = strings.NewReader(numbers(5))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	start(t, cmd)
	usage(t, path, runsAndWaits(1, 3))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	status := finish(t, cmd)
	if want := "stopped by the signal interrupt: 0 jobs done"; status != 130 || !strings.Contains(said.String(), want) ||
		strings.Contains(said.String(), "ran") {
		t.Errorf("it ended with %d and said %q, want %q", status, said.String(), want)
	}
	h.release()
}

// A run that --halt has ended does not wait for slots either, if other processes have all.
func TestB8_RunSharedHalted(t *testing.T) {
	path, pipe := slotsFile(t), fifo(t)
	ev := events(t, pipe)
	gate := fifo(t)
	h := hold(t, path, "--max", "2")
	cmd := command(t, "run", "-j3", "--shared", path, "--halt", "soon,fail=1", "-n0",
		"echo in > "+pipe+"; read x < "+gate+"; exit 7", ":::", "1", "2", "3", "4")
	start(t, cmd)
	ev.next()
	usage(t, path, runsAndWaits(2, 3))
	other := willHold(t, path, "--priority", "high")
	usage(t, path, runsAndWaits(2, 4))
	write(t, gate, "go\n")
	if status := finish(t, cmd); status != 7 {
		t.Errorf("exit status %d, want 7", status)
	}
	other.await()
	other.release()
	h.release()
}

// Progress says how many slots others have, also when they have none.
func TestB8_RunSharedProgress(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path)
	cmd := command(t, "run", "--progress", "json", "--shared", path, "true", ":::", "1")
	r, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	l := &lines{t: t, r: r}
	var event struct {
		Max    int `json:"shared_max"`
		Others int `json:"shared_others"`
	}
	if err := json.Unmarshal([]byte(l.next()), &event); err != nil || event.Max != 1 || event.Others != 1 {
		t.Errorf("progress says %+v, %v; want that others have the one slot", event, err)
	}
	h.release()
	rest, err := io.ReadAll(r)
	if want := `"shared_max":1,"shared_others":0}`; err != nil || !strings.Contains(string(rest), want) {
		t.Errorf("at the end progress says %s, %v; want %s", rest, err, want)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// An = in the path of a file does not begin a number of slots if a number follows or the =
// is in a directory's name.
func TestB8_RunSharedPathWithEquals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a=b")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{"io": "io", "c=d=3": "c=d"} {
		stint(t, "", "run", "--shared", filepath.Join(dir, spec), "echo", ":::", "ran").want(t, "ran\n", "", 0)
		if _, err := shm.Inspect(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
}

// A run that waits because 64 processes share the slots already reports that.
func TestB8_RunSharedSurplus(t *testing.T) {
	path := slotsFile(t)
	var all []*shm.Region
	for range shm.ProcessesMax {
		r, err := shm.Open(path, shm.Geometry{Slots: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		all = append(all, r)
	}
	cmd := command(t, "run", "--shared", path, "echo", ":::", "ran")
	var out strings.Builder
	cmd.Stdout = &out
	r, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	l := &lines{t: t, r: r}
	want := "stint: waiting for a process to end: 64 processes share " + path + ", which is the maximum"
	if got := l.next(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	if status := finish(t, cmd); status != 0 || out.String() != "ran\n" {
		t.Errorf("it ended with %d and said %q", status, out.String())
	}
}

// Invalid values of --shared are refused, and no job runs.
func TestB8_RunSharedRefuses(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path, "--max", "2")
	for spec, says := range map[string]string{
		"":                              "--shared is empty: give NAME[=MAX]",
		"=4":                            "a name is missing",
		"io=":                           "the number of slots",
		"io=0":                          "the number of slots",
		"io=9999999":                    "from 1 to",
		path + "=b":                     "needs that too, as in " + path + "=b=4",
		path + "=3":                     "is in use with a max of 2, not 3, by sh[" + strconv.Itoa(h.cmd.Process.Pid) + "]",
		filepath.Join(path, "x") + "=1": "a name with a slash is the path of a file",
	} {
		stint(t, "", "run", "--shared", spec, "echo", ":::", "ran").want(t, "", says, 125)
	}
}
