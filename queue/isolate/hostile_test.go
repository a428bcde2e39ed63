//go:build linux

package isolate_test

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// never is a grace period that is longer than any test.
const never = time.Hour

// The environment has each variable once, with the command's value if it sets one, and
// the variables that name the task are always those of this task.
func TestC9_EnvironmentOfACommand(t *testing.T) {
	t.Setenv("LANGUAGE", "worker's")
	t.Setenv("STINT_TOKEN", "of the task that runs this worker")
	var l log
	cmd := isolate.Command{Args: []string{"env"}, Env: []string{"LANGUAGE=task's", "STINT_TASK=forged"}}
	if _, err := run(t.Context(), isolate.Config{Log: l.open}, cmd); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(l.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = append(got[name], value)
	}
	token := strconv.FormatUint(uint64(task().Lease.Token), 10)
	for name, want := range map[string]string{"LANGUAGE": "task's", "STINT_TOKEN": token} {
		if !slices.Equal(got[name], []string{want}) {
			t.Errorf("%s is %q, want %q once", name, got[name], want)
		}
	}
	if ids := got["STINT_TASK"]; len(ids) != 1 || ids[0] == "forged" {
		t.Errorf("the task is %q", ids)
	}
}

// A relative program name refers to the command's directory, not to the worker's.
func TestC9_ProgramOfADirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ls", "sub/ls"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\necho "+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, dir, want string }{
		{"./ls", "", "ls"},
		{"./ls", dir, "ls"},
		{"sub/ls", "", "sub/ls"},
		{"sub/ls", dir, "sub/ls"},
		{"./ls", filepath.Join(dir, "sub"), "sub/ls"},
		{filepath.Join(dir, "ls"), filepath.Join(dir, "sub"), "ls"},
	} {
		var l log
		cmd := isolate.Command{Args: []string{test.name}, Dir: test.dir}
		_, err := run(t.Context(), isolate.Config{Log: l.open}, cmd)
		if got := strings.TrimSpace(l.String()); err != nil || got != test.want {
			t.Errorf("%s in %q was %q, %v; want %s", test.name, test.dir, got, err, test.want)
		}
	}
}

// A log that cannot be opened is not a permanent failure.
func TestC9_LogThatIsMissing(t *testing.T) {
	missing := func(context.Context, *queue.Task) (io.WriteCloser, error) {
		return os.Create(filepath.Join(t.TempDir(), "no", "such"))
	}
	if _, err := run(t.Context(), isolate.Config{Log: missing}, sh("true")); err == nil || retry.IsPermanent(err) {
		t.Errorf("the attempt ended with %v", err)
	}
}

// If the context ends before the program is started, the program is not started.
func TestC9_OverBeforeTheStart(t *testing.T) {
	did := filepath.Join(t.TempDir(), "did")
	ctx, cancel := context.WithCancelCause(t.Context())
	slow := func(context.Context, *queue.Task) (io.WriteCloser, error) {
		cancel(queue.ErrStale)
		return &log{}, nil
	}
	if _, err := run(ctx, isolate.Config{Log: slow}, sh("touch "+did)); err == nil {
		t.Error("the attempt has succeeded")
	}
	if _, err := os.Stat(did); err == nil {
		t.Error("the program ran")
	}
}

// A group that is in its grace period is killed at once when its lease is lost or it
// exceeds the memory limit.
func TestC9_EndWhileEnding(t *testing.T) {
	t.Run("lease", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		path := file(t)
		go func() {
			awaitNumbers(t, path, 1)
			cancel(queue.ErrStale)
		}()
		cfg := isolate.Config{Time: 100 * time.Millisecond, Grace: never}
		cmd := sh(`trap 'echo 1 >> "$0"' TERM; while :; do sleep 0.1; done`)
		cmd.Args = append(cmd.Args, path)
		if _, err := run(ctx, cfg, cmd); err == nil {
			t.Error("the attempt has succeeded")
		}
	})
	t.Run("memory", func(t *testing.T) {
		cfg := isolate.Config{Time: 50 * time.Millisecond, Grace: never, Memory: room}
		if _, err := run(t.Context(), cfg, sh("trap '' TERM; sleep 0.2; "+eater(slightlyMore))); err == nil {
			t.Error("the attempt has succeeded")
		}
	})
}

// stuck is a log whose Write never returns.
type stuck struct{}

func (stuck) Write([]byte) (int, error) { select {} }

func (stuck) Close() error { return nil }

// An attempt ends even if a Write of its log never returns.
func TestC9_LogThatIsStuck(t *testing.T) {
	t.Parallel() // takes some seconds
	open := func(context.Context, *queue.Task) (io.WriteCloser, error) { return stuck{}, nil }
	got, err := run(t.Context(), isolate.Config{Log: open}, sh("head -c 10000000 /dev/zero & sleep 0.1; exit 3"))
	if err == nil {
		t.Error("the attempt has succeeded")
	}
	exit, ok := isolate.ExitOf(&queue.Task{State: queue.Dead, Checkpoint: got.Checkpoint})
	if !ok || exit.Status != 3 || !strings.Contains(exit.Lost, "log") {
		t.Errorf("it ended with %+v", exit)
	}
}

// The largest memory limit sets no RLIMIT_DATA, because twice the limit would overflow.
func TestC9_MemoryWithoutEnd(t *testing.T) {
	var limits []string
	for _, most := range []int64{0, math.MaxInt64} {
		var l log
		if _, err := run(t.Context(), isolate.Config{Log: l.open, Memory: most}, sh("ulimit -d")); err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l.String())
	}
	if limits[0] != limits[1] {
		t.Errorf("RLIMIT_DATA is %q without a limit, and %q with the largest one", limits[0], limits[1])
	}
}

// watchers returns the watcher processes of this process.
func watchers(t *testing.T) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[1-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || fields[0] == "Z" || fields[1] != strconv.Itoa(os.Getpid()) ||
			!strings.Contains(string(line), "watch-jobs") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// If the watcher is killed, the next start of a group starts a new one.
func TestC9_WatcherThatIsKilled(t *testing.T) {
	for range 3 {
		if _, err := run(t.Context(), isolate.Config{}, sh("true")); err != nil {
			t.Fatal(err)
		}
		pids := watchers(t)
		if len(pids) != 1 {
			t.Fatalf("%d watchers, want 1", len(pids))
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// Waitid returns when all threads have ended; the state in /proc is that of the
		// first.
		if err := unix.Waitid(unix.P_PID, pids[0], nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t.Context(), isolate.Config{}, sh("true")); err != nil {
		t.Fatal(err)
	}
}
