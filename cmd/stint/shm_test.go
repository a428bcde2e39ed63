//go:build linux

package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/shm"
)

// named is the name of slots in /dev/shm that are this test's.
func named(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("test-%x", rand.Uint64())
	t.Cleanup(func() {
		if err := shm.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return name
}

// row returns the line of a table that begins with a word, with single spaces.
func row(t *testing.T, table, word string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == word {
			return strings.Join(fields, " ")
		}
	}
	t.Fatalf("no line of the table begins with %s:\n%s", word, table)
	return ""
}

// Slots are listed with their holders and waiting processes, for people and for programs.
func TestB8_ShmLs(t *testing.T) {
	name := named(t)
	h := hold(t, name, "--max", "2")
	run := command(t, "run", "--shared", name, "-j9", "sleep 1000", ":::", "1", "2", "3")
	start(t, run)
	usage(t, name, runsAndWaits(2, 2))
	pid, stintPid := h.cmd.Process.Pid, run.Process.Pid
	self := filepath.Base(os.Args[0])

	r := stint(t, "", "shm", "ls")
	want, holder := fmt.Sprintf("%s slots 2 2 2 2 ", name), fmt.Sprintf("sh[%d]", pid)
	if got := row(t, r.stdout, name); !strings.HasPrefix(got, want) || !strings.Contains(got, holder) || r.status != 0 ||
		row(t, r.stdout, "NAME") != "NAME SHARES MAX RUNNING WAITING OPEN HELD BY" {
		t.Errorf("status %d, and the line is %q, want %q", r.status, got, want)
	}

	r = stint(t, "", "shm", "ls", name)
	for process, want := range map[int]string{
		pid:      fmt.Sprintf("%d sh slots 1 0 -", pid),
		stintPid: fmt.Sprintf("%d %.32s slots 1 2 -", stintPid, self),
	} {
		if got := row(t, r.stdout, fmt.Sprint(process)); got != want {
			t.Errorf("process %d is listed as %q, want %q", process, got, want)
		}
	}
	if want := "is open in 2 of at most 64 processes"; !strings.Contains(r.stdout, want) {
		t.Errorf("it says %s\nwant %q", r.stdout, want)
	}

	for _, args := range [][]string{{name}, nil} {
		all := parse[shm.Info](t, stint(t, "", append([]string{"shm", "ls", "--json"}, args...)...).stdout)
		found := 0
		for _, info := range all {
			if info.Name == name && info.Slots[0].Running == 2 && len(info.Slots[0].Holders) == 2 {
				found++
			}
		}
		if found != 1 {
			t.Errorf("shm ls --json %s says %+v", args, all)
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, run)
	usage(t, name, func(info shm.Info) bool { return len(info.Processes) == 1 })

	// A stopped holder is marked as stopped wherever it is named.
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	usage(t, name, func(info shm.Info) bool { return info.Processes[0].Stopped })
	holder += " (stopped)"
	got := row(t, stint(t, "", "shm", "ls").stdout, name)
	if said := stint(t, "", "shm", "rm", name).stderr; !strings.HasSuffix(got, holder) || !strings.Contains(said, holder) {
		t.Errorf("a stopped process is listed as %q, and reported in %q, want %q", got, said, holder)
	}
	if got = row(t, stint(t, "", "shm", "ls", name).stdout, fmt.Sprint(pid)); !strings.Contains(got, "sh (stopped)") {
		t.Errorf("a stopped process is listed as %q", got)
	}
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := row(t, stint(t, "", "shm", "ls", name).stdout, fmt.Sprint(stintPid)); !strings.Contains(got, "(ended)") {
		t.Errorf("one that was killed is listed as %q", got)
	}
	holders := fmt.Sprintf("%s slots 2 1 0 1 sh[%d]", name, pid)
	if got := row(t, stint(t, "", "shm", "ls").stdout, name); got != holders {
		t.Errorf("with one that was killed the line is %q, want %q", got, holders)
	}
	h.release()
}

// A region of several limits, mutexes and rates has a line for each.
func TestB8_ShmLsLimits(t *testing.T) {
	path := slotsFile(t)
	rate := shm.Rate{PerSecond: 0.5, Capacity: 9}
	r, err := shm.Open(path, shm.Geometry{Slots: []int{4, 7}, Mutexes: 1, Rates: []shm.Rate{rate}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if locked, _ := r.Mutex(0).TryLock(); !locked {
		t.Fatal("the mutex is locked")
	}
	var got []string
	for line := range strings.Lines(stint(t, "", "shm", "ls", path).stdout) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		path + " slots 0 4 0 0 1 -", path + " slots 1 7 0 0 1 -", path + " rate 0.5/s - 0 1 9 of 9 tokens left",
		fmt.Sprintf("%d %.32s mutex 1 0 -", os.Getpid(), filepath.Base(os.Args[0])),
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it says\n%s\nwant %q", all, want)
		}
	}
	stint(t, "", "sem", "--name", path, "true").want(t, "", "limits: 2, mutexes: 1, rates: 1", 125)
}

// A process that waits for a rate is listed with its tier.
func TestB8_ShmLsRate(t *testing.T) {
	path := slotsFile(t)
	r, err := shm.Open(path, shm.Geometry{Rates: []shm.Rate{{PerSecond: 1, Capacity: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const high = 1
	b := r.Bucket(0)
	b.Bind(func() {})
	b.Want(high, 1, 3)
	want := fmt.Sprintf("%d %.32s rate - 3 high", os.Getpid(), filepath.Base(os.Args[0]))
	out := stint(t, "", "shm", "ls", path).stdout
	if got := row(t, out, fmt.Sprint(os.Getpid())); got != want {
		t.Errorf("a process that waits for a rate is listed as %q, want %q", got, want)
	}
	if n := strings.Count(out, fmt.Sprintf("\n%d ", os.Getpid())); n != 1 {
		t.Errorf("the process has %d rows, want 1:\n%s", n, out)
	}
	b.Want(high, 0, 0)
}

// Slots are removed if no process has them open; otherwise the message names the
// processes.
func TestB8_ShmRm(t *testing.T) {
	path := slotsFile(t)
	h := hold(t, path, "--max", "2")
	stint(t, "", "shm", "rm", path).want(t, "", fmt.Sprintf("in use by sh[%d]", h.cmd.Process.Pid), 125)
	h.release()
	stint(t, "", "shm", "rm", path).want(t, "", "", 0)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	stint(t, "", "shm", "rm", path).want(t, "", "there is no region "+path, 1)
	none := "there is no region " + path + "; a name with a slash is the path of a file"
	stint(t, "", "shm", "ls", path).want(t, "", none, 1)
	gone := named(t)
	stint(t, "", "shm", "ls", gone).want(t, "", "there is no region "+gone+"; stint shm ls lists the regions", 1)
	stint(t, "", "shm", "rm").want(t, "", "give the name of one region", 125)
	stint(t, "", "shm", "ls", "a", "b").want(t, "", "give the name of one region", 125)
}

// The names of slots can be completed.
func TestB8_ShmCompletion(t *testing.T) {
	name := named(t)
	hold(t, name).release()
	for _, words := range []string{"sem --name", "run --shared", "shm rm", "shm ls"} {
		r := stint(t, "", append(append([]string{"__complete"}, strings.Fields(words)...), name[:8])...)
		if !regexp.MustCompile("(?m)^" + name + "$").MatchString(r.stdout) {
			t.Errorf("stint %s is completed by %s", words, r.stdout)
		}
	}
}
