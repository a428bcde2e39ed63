//go:build linux

package shm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// What a process holds stays held when it executes another program, until that program
// has ended.
func TestB8_KeptOnExec(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, shell *process){
		"ended": func(t *testing.T, shell *process) {
			t.Helper()
			shell.send(t, "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; echo") // as scripts use them
			if !shell.await(1) {
				t.Fatal("the shell has ended")
			}
			if got := inspect(t, shell.path).Slots[0].Running; got != 3 {
				t.Errorf("%d slots are held after the shell has closed its files, want 3", got)
			}
			shell.send(t, "exit 3")
		},
		"killed": func(t *testing.T, shell *process) {
			t.Helper()
			if !shell.kill() {
				t.Error("the shell had ended before")
			}
		},
		"survived": func(t *testing.T, shell *process) {
			t.Helper()
			shell.send(t, "exec 3<&0; sh -c 'echo; read line' <&3 2>/dev/null & echo")
			if !shell.await(2) || !shell.kill() {
				t.Fatal("the shell has ended")
			}
			if got := inspect(t, shell.path).Slots[0].Running; got != 3 {
				t.Errorf("%d slots are held while its child runs, want 3", got)
			}
			shell.in.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "region")
			shell := start(t, "exec shell", path)
			shell.send(t, "echo")
			if !shell.await(1) {
				t.Fatal("the shell has ended")
			}
			info := inspect(t, path)
			want := shm.ProcessUsage{Process: shm.Process{PID: shell.cmd.Process.Pid, Name: "shell"}, Slots: 1}
			if h := info.Slots[0].Holders; len(h) != 1 || h[0] != want || len(info.Processes) != 1 {
				t.Errorf("usage is %+v, want %+v", info, want)
			}
			acquire(t, path)
			acquire(t, path)
			s := stint.New(1, stint.Config{Slots: open(t, path, geometry).Slots(0)})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			acquired := goAcquire(ctx, s).answer
			until(t, "no caller waits", func() bool { return inspect(t, path).Slots[0].Waiting == 1 })
			end(t, shell)
			if err := <-acquired; err != nil {
				t.Errorf("the slot is not recovered: %v", err)
			}
		})
	}
}

// A process for which KeepOnExec fails is listed under its own name.
func TestB8_KeptOnExecFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	kept := r.KeepOnExec("other")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(kept, syscall.EMFILE) && !errors.Is(kept, syscall.EINVAL) {
		t.Errorf("kept without a descriptor: %v", kept)
	}
	if name := inspect(t, path).Processes[0].Name; name != filepath.Base(os.Args[0]) {
		t.Errorf("it is listed as %s", name)
	}
}

func TestB8_KeptOnExecAfterClose(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "region"), geometry)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := r.File(); !errors.Is(err, shm.ErrClosed) {
		t.Errorf("its file is %v, %v; want %v", f, err, shm.ErrClosed)
	}
	if err := r.KeepOnExec("other"); !errors.Is(err, shm.ErrClosed) {
		t.Errorf("kept: %v, want %v", err, shm.ErrClosed)
	}
}

// Closing the file of a region does not affect the locks: this process still sees which
// processes live, and they see it.
func TestB8_FileIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r, other := open(t, path, geometry), open(t, path, geometry)
	f, err := r.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for range 20 { // one of these files gets the descriptor number that the file had
		other, err := os.Create(filepath.Join(t.TempDir(), "other"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	lock(t, other.Mutex(0), false)
	if locked, _ := r.Mutex(0).TryLock(); locked {
		t.Error("it has taken a lock that another process holds")
	}
	if n := len(inspect(t, path).Processes); n != 2 {
		t.Errorf("%d have the region open, want 2", n)
	}
	if err := r.Close(); err != nil {
		t.Errorf("the region cannot be closed: %v", err)
	}
}

// A process that inherits the file of a region keeps what the first process holds, until
// it closes the file.
func TestB8_FileOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "share file", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	p.cmd.Process.Kill() //nolint:errcheck // the next check fails if it had no effect
	if err := p.cmd.Wait(); err == nil {
		t.Error("the process had ended before")
	}
	if n := inspect(t, path).Slots[0].Running; n != 1 {
		t.Errorf("%d slots are held, want 1", n)
	}
	p.send(t, "close")
	if !p.await(1) {
		t.Fatal("the process that inherited the file has ended")
	}
	if n := inspect(t, path).Slots[0].Running; n != 0 {
		t.Errorf("%d slots are held after the file is closed, want 0", n)
	}
}
