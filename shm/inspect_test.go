//go:build linux

package shm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

func inspect(t *testing.T, name string) shm.Info {
	t.Helper()
	info, err := shm.Inspect(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Inspect reports living holders, waiters, and dead holders that are not recovered yet.
func TestB8_Inspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	dead, living := start(t, "hold", path), start(t, "hold", path)
	if !dead.await(1) || !living.await(1) {
		t.Fatal("a process has ended")
	}
	r := open(t, path, geometry)
	slots := r.Slots(0)
	slots.Bind(func() {}, nil)
	if _, err := slots.TryAcquire(stint.Normal); err != nil {
		t.Fatal(err)
	}
	lock(t, r.Mutex(0), false)
	r.NeverSweep()
	r.NeverRing(errors.ErrUnsupported)
	slots.Want(stint.Normal, 2)
	dead.kill()

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info := inspect(t, path)
	slices.SortFunc(info.Slots[0].Holders, func(a, b shm.ProcessUsage) int { return a.PID - b.PID })
	program := filepath.Base(os.Args[0])
	this := shm.Process{PID: os.Getpid(), Name: program}
	other := shm.Process{PID: living.cmd.Process.Pid, Name: program}
	gone := shm.Process{PID: dead.cmd.Process.Pid, Name: program}
	want := shm.Info{
		Name: path, Path: path, Geometry: geometry, Processes: []shm.Process{other, this},
		Slots: []shm.LimitUsage{{Max: 3, Running: 2, Waiting: 2, Holders: []shm.ProcessUsage{
			{Process: this, Slots: 1, Waiting: 2}, {Process: gone, Slots: 1, Dead: true}, {Process: other, Slots: 1},
		}}},
		Mutexes: []shm.LimitUsage{{Max: 1, Running: 1, Holders: []shm.ProcessUsage{{Process: this, Slots: 1}}}},
	}
	slices.SortFunc(want.Slots[0].Holders, func(a, b shm.ProcessUsage) int { return a.PID - b.PID })
	byPID := func(a, b shm.Process) int { return a.PID - b.PID }
	slices.SortFunc(info.Processes, byPID)
	slices.SortFunc(want.Processes, byPID)
	if got, want := asJSON(t, info), asJSON(t, want); got != want {
		t.Errorf("inspected\n%s, want\n%s", got, want)
	}
	if after, err := os.ReadFile(path); err != nil || !slices.Equal(before, after) {
		t.Errorf("the region was changed, %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A holder that is stopped is reported as stopped, and a process that only has the
// registered PID of another holder is not.
func TestB8_InspectStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "sign", path)
	p.send(t, strconv.Itoa(p.cmd.Process.Pid))
	p.await(1)
	other := start(t, "sign", path+" of another")
	other.send(t, strconv.Itoa(p.cmd.Process.Pid))
	other.await(1)
	stopped := func(path string) bool {
		info := inspect(t, path)
		holder := info.Slots[0].Holders[0].Process
		want := p
		if path == other.path {
			want = other // it is known to hold the lock, which the process with the PID does not
		}
		if len(info.Processes) != 1 || info.Processes[0] != holder || holder.PID != want.cmd.Process.Pid {
			t.Errorf("processes %+v, and the holder is %+v", info.Processes, holder)
		}
		return holder.Stopped
	}
	if stopped(path) {
		t.Error("a running process is reported as stopped")
	}
	p.signal(t, syscall.SIGSTOP)
	if !stopped(path) {
		t.Error("a stopped process is not reported as stopped")
	}
	if stopped(path + " of another") {
		t.Error("a process is reported as stopped because an unrelated process with its PID is")
	}
	if err := shm.Remove(path); err == nil || !strings.Contains(err.Error(), "(stopped)") {
		t.Errorf("Remove: %v, want that the process is stopped", err)
	}
	p.signal(t, syscall.SIGCONT)
	until(t, "the process is stopped for ever", func() bool { return !stopped(path) })
}

// If a process has ended and left its open file to living ones, one of those is shown as
// the holder, and the ended one is named beside it.
func TestB8_InspectNamesTheSurvivor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	shell := start(t, "exec shell", path)
	shell.send(t, "exec 4<&0; cat <&4 >/dev/null 2>&1 & printf $!; sh -c 'cat; :' <&4 >/dev/null 2>&1 & echo .")
	first, err := strconv.Atoi(shell.readUntil(t, "."))
	if err != nil {
		t.Fatal(err)
	}
	want := shm.Process{PID: shell.cmd.Process.Pid, Name: "shell"}
	check := func() {
		t.Helper()
		info := inspect(t, path)
		if len(info.Processes) != 1 || info.Processes[0] != want || info.Slots[0].Holders[0].Process != want {
			t.Errorf("inspected %+v, want the one process %+v", info, want)
		}
	}
	check()
	shell.kill()
	// The shell of the second has a child, which has the file as well.
	want = shm.Process{PID: first, Name: "cat", Outlived: fmt.Sprintf("shell[%d]", want.PID), Others: 2}
	until(t, "not all processes are seen", func() bool { return inspect(t, path).Processes[0].Others == 2 })
	check()
	shown := fmt.Sprintf("cat[%d] (with 2 more, outlived %s)", first, want.Outlived)
	if err := shm.Remove(path); err == nil || !strings.Contains(err.Error(), shown) {
		t.Errorf("Remove: %v, want that it names %s", err, shown)
	}
	shell.in.Close()
	until(t, "processes are listed although none lives", func() bool { return len(inspect(t, path).Processes) == 0 })
}

func TestB8_InspectFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	for range shm.ProcessesMax {
		open(t, path, geometry)
	}
	if n := len(inspect(t, path).Processes); n != shm.ProcessesMax {
		t.Errorf("%d processes have it open, want %d", n, shm.ProcessesMax)
	}
}

// A geometry that is read from the region equals the one that it was made with.
func TestB8_InspectGeometry(t *testing.T) {
	for _, g := range []shm.Geometry{
		{Slots: []int{1}},
		{Mutexes: 2},
		{Slots: []int{7, 100}, Mutexes: 3},
	} {
		path := filepath.Join(t.TempDir(), "region")
		open(t, path, g)
		info := inspect(t, path)
		if got, want := info.Geometry.String(), g.String(); got != want {
			t.Errorf("the geometry is %s, want %s", got, want)
		}
		if text := asJSON(t, info); strings.Contains(text, ": null") {
			t.Errorf("in JSON a list is null:\n%s", text)
		}
		if len(info.Slots) != len(g.Slots) || len(info.Mutexes) != g.Mutexes {
			t.Errorf("it has %d limits and %d mutexes, want %v", len(info.Slots), len(info.Mutexes), g)
		}
	}
}

// List returns all files of the directory, also those that are not regions.
func TestB8_List(t *testing.T) {
	name := uniqueName(t)
	open(t, name, geometry)
	path := inspect(t, name).Path
	for suffix, text := range map[string]string{".notes": "notes", ".raw": ""} {
		if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := shm.List()
	if err != nil {
		t.Fatal(err)
	}
	if text := asJSON(t, all); strings.Contains(text, ": null") {
		t.Errorf("in JSON a list is null:\n%s", text)
	}
	for name, says := range map[string]string{name: "", name + ".notes": "something else", name + ".raw": "incomplete"} {
		i := slices.IndexFunc(all, func(info shm.Info) bool { return info.Name == name })
		if i < 0 || !strings.Contains(all[i].Err, says) || (says == "") != (len(all[i].Slots) == 1) {
			t.Errorf("list has for %s: %+v, want an error with %q", name, all, says)
		}
	}
}

// uniqueName returns a name for a region. All files whose names begin with it are removed
// when the test ends.
func uniqueName(t *testing.T) string {
	t.Helper()
	name := "test-" + filepath.Base(filepath.Dir(t.TempDir()))
	t.Cleanup(func() {
		found, err := filepath.Glob("/dev/shm/stint-*/" + name + "*")
		if err != nil || len(found) == 0 {
			t.Errorf("found %q, %v; want files", found, err)
		}
		for _, path := range found {
			os.Remove(path) //nolint:errcheck // a failure shows in the next run
		}
	})
	return name
}

// Remove removes a region only if it is not open in any process.
func TestB8_Remove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "hold", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	user := inspect(t, path).Processes[0]
	if err := shm.Remove(path); !errors.Is(err, shm.ErrInUse) || !strings.Contains(err.Error(), user.Name+"[") {
		t.Errorf("removed: %v, want a refusal that names %v", err, user)
	}
	p.kill()
	if err := shm.Remove(path); err != nil {
		t.Error(err)
	}
	if err := shm.Remove(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed what is not there: %v", err)
	}
	if _, err := shm.Inspect(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("inspected what is not there: %v", err)
	}
}

// A file that cannot be inspected, such as one of another version, can be removed when it
// is not in use.
func TestB8_RemoveAnUnknownVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{99}, 8); err != nil {
		t.Fatal(err)
	}
	if _, err := shm.Inspect(path); !errors.Is(err, shm.ErrMismatch) {
		t.Errorf("inspected: %v, want %v", err, shm.ErrMismatch)
	}
	if err := shm.Remove(path); !errors.Is(err, shm.ErrInUse) {
		t.Errorf("removed: %v, want %v", err, shm.ErrInUse)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := shm.Remove(path); err != nil {
		t.Error(err)
	}
}
