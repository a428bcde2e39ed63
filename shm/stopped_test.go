//go:build linux

package shm_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// taken opens a region and takes all its slots.
func taken(t *testing.T, path string) (r *shm.Region, slots *shm.Slots, grants []stint.Grant) {
	t.Helper()
	r = open(t, path, geometry)
	slots = r.Slots(0)
	slots.Bind(func() {}, nil)
	for range geometry.Slots[0] {
		grant, err := slots.TryAcquire(stint.Normal)
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, grant)
	}
	return r, slots, grants
}

// until polls for a state of other processes that cannot be waited for, and fails with
// what.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := shm.Now(); !holds(); runtime.Gosched() {
		if shm.Now()-began > int64(patience) {
			t.Fatal(what)
		}
	}
}

// acquire gets a slot through a region of its own.
func acquire(t *testing.T, path string) *stint.Permit {
	t.Helper()
	s := stint.New(1, stint.Config{Slots: open(t, path, geometry).Slots(0)})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := s.Acquire(ctx)
	if err != nil {
		t.Fatalf("no slot: %v", err)
	}
	return &p
}

func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if signal == syscall.SIGSTOP {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("waited for it to stop: %v, %v", status, err)
		}
	}
}

// A slot that is granted to a stopped process goes on to another. When the stopped
// process continues, it waits as before. It keeps the slots that it holds.
func TestB8_StoppedProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	_, slots, grants := taken(t, path)
	p := start(t, "hold", path)
	until(t, "the process does not wait", func() bool { return slots.Usage().Waiting == 1 })
	p.signal(t, syscall.SIGSTOP)
	slots.Release(grants[0])
	held := acquire(t, path)
	p.signal(t, syscall.SIGCONT)
	held.Release()
	if !p.await(1) {
		t.Fatal("the process has ended")
	}

	p.signal(t, syscall.SIGSTOP)
	slots.Release(grants[1])
	acquire(t, path)
	if u := slots.Usage(); u.Running != 3 || len(u.Holders) != 3 {
		t.Errorf("usage is %+v, want three holders, the stopped one among them", u)
	}
	p.kill()
	acquire(t, path)
}

// Children of a process that has died do not keep its slots.
func TestB8_ChildOfADeadProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "parent", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	p.kill()
	for range geometry.Slots[0] {
		acquire(t, path)
	}
}

// Processes that have the region open when its file is deleted keep using it; a process
// that opens it later makes another.
func TestB8_DeletedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	_, slots, grants := taken(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := slots.TryAcquire(stint.Normal); err == nil {
		t.Error("got a slot above the limit")
	}
	slots.Release(grants[0])
	if _, err := slots.TryAcquire(stint.Normal); err != nil {
		t.Errorf("a slot that is free was refused: %v", err)
	}
	taken(t, path)
}

// A process that uses a region whose file was truncated ends with a fault. It does
// not continue without a limit.
func TestB8_TruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "touch", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil {
		t.Error("the process continued")
	}
	open(t, path, geometry)
}
