package proc_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stintgo/stint/internal/proc"
)

// start runs a shell script whose output goes to the returned file.
func start(t *testing.T, script string) (*proc.Process, *os.File) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script},
		Env: proc.NewEnv(os.Environ(), "run").Append(nil, 7, 3), Files: [3]*os.File{null, out, null},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, out
}

func output(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWait_Status(t *testing.T) {
	for _, row := range []struct {
		script string
		want   proc.Status
	}{
		{"exit 0", proc.Status{}},
		{"exit 3", proc.Status{Exit: 3}},
		{"kill -9 $$", proc.Status{Signal: syscall.SIGKILL}},
	} {
		p, _ := start(t, row.script)
		if got := p.Wait(nil, nil); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.script, got, row.want)
		}
	}
}

func TestStart_Environment(t *testing.T) {
	t.Setenv("STINT_SEQ", "outer")
	t.Setenv("STINT_RUN", "outer")
	p, out := start(t, "env | grep ^STINT_ | sort; cat")
	p.Wait(nil, nil)
	if got := output(t, out); got != "STINT_RUN=run\nSTINT_SEQ=7\nSTINT_SLOT=3\n" {
		t.Errorf("environment: %q", got)
	}
}

// The process has a group of its own, and a signal reaches all of it, also a grandchild
// for which the leader would wait forever.
func TestSignal_ReachesGrandchildren(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000 & echo ready; wait"},
		Env: os.Environ(), Files: [3]*os.File{r, w, w},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 10)); err != nil { // "ready"
		t.Fatal(err)
	}
	if pgid, err := syscall.Getpgid(p.Pid()); err != nil || pgid != p.Pid() {
		t.Errorf("Getpgid = %d, %v; want %d", pgid, err, p.Pid())
	}
	p.Signal(syscall.SIGTERM)
	if got := p.Wait(nil, nil); got.Signal != syscall.SIGTERM {
		t.Errorf("status %+v, want SIGTERM", got)
	}
	// The pipe ends when the last process that holds it has ended.
	if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("read %d, %v; want the end", n, err)
	}
	p.Signal(syscall.SIGKILL) // after Wait: must have no effect
}

// When Wait calls last the leader has ended and its PID is not reused: last can end the
// rest.
func TestWait_LastStillReachesTheGroup(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000 & exit 5"},
		Env: os.Environ(), Files: [3]*os.File{r, w, w},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := p.Wait(func() { p.Signal(syscall.SIGKILL) }, nil); got.Exit != 5 {
		t.Errorf("status %+v, want exit 5", got)
	}
	if n, err := r.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("read %d, %v; want the end: the background process is still there", n, err)
	}
}

// A group survives its leader as long as one of its processes runs, whatever the name of
// that process: here one that looks like a zombie of another group.
func TestSurvived(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ready", "never"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	odd := filepath.Join(dir, "a) Z 1 1")
	if err := os.WriteFile(odd, []byte("#!/bin/sh\necho > ready; read x < never\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		script string
		want   bool
	}{
		{"exit 0", false},
		{"sleep 1000 & exit 0", true},
		{"cd '" + dir + "'; './a) Z 1 1' & read x < ready; exit 0", true},
	} {
		p, _ := start(t, row.script)
		var before, after bool
		p.Wait(func() {
			before = p.Survived()
			p.Signal(syscall.SIGKILL)
			for after = true; after; {
				after = p.Survived()
			}
		}, nil)
		if before != row.want {
			t.Errorf("%s: survived %v, want %v", row.script, before, row.want)
		}
	}
}

// Spec.Group holds the group's ID from the start until the leader is reaped, also while
// last is called.
func TestStart_PublishesItsGroup(t *testing.T) {
	var group, last atomic.Int32
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "exit 0"}, Env: os.Environ(),
		Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Group: &group,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := group.Load(); got != int32(p.Pid()) {
		t.Errorf("after the start: %d, want %d", got, p.Pid())
	}
	p.Wait(func() { last.Store(group.Load()) }, nil)
	if last.Load() != int32(p.Pid()) || group.Load() != 0 {
		t.Errorf("before it is reaped %d, then %d; want %d, then 0", last.Load(), group.Load(), p.Pid())
	}
	group.Store(-1) // as callers do before the start
	_, err = proc.Start(&proc.Spec{
		Path: "/no/such/program", Args: []string{"x"}, Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Group: &group,
	})
	if err == nil || group.Load() != 0 {
		t.Errorf("after a start that failed: %d, %v; want 0", group.Load(), err)
	}
}

func TestLook(t *testing.T) {
	if path, err := proc.Look("sh"); err != nil || !strings.HasSuffix(path, "/sh") {
		t.Errorf("sh: %q, %v", path, err)
	}
	_, err := proc.Look("no-such-program-here")
	if !errors.Is(err, exec.ErrNotFound) || proc.LookStatus(err) != proc.ExitNotFound {
		t.Errorf("missing program: %v, status %d", err, proc.LookStatus(err))
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Look(plain); err == nil || proc.LookStatus(err) != proc.ExitCannotRun {
		t.Errorf("file that is not executable: %v, status %d", err, proc.LookStatus(err))
	}
}

// A process starts in the given directory, and has the given descriptors and no others.
func TestStart_DirectoryAndDescriptors(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "pwd >&3; echo four >&4; (: >&5) 2>/dev/null || echo no five >&4"},
		Dir: dir, Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Extra: []*os.File{out, out},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Wait(nil, nil)
	if got, want := output(t, out), dir+"\nfour\nno five\n"; got != want {
		t.Errorf("the process wrote %q, want %q", got, want)
	}
}
