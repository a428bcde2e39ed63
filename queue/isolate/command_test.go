//go:build linux

package isolate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// log is a log in memory.
type log struct {
	bytes.Buffer
	closed int
}

func (l *log) Close() error { l.closed++; return nil }

func (l *log) open(context.Context, *queue.Task) (io.WriteCloser, error) { return l, nil }

func noLog(context.Context, *queue.Task) (io.WriteCloser, error) {
	return nil, fmt.Errorf("nowhere to write: %w", syscall.ENOSPC)
}

// run runs cmd as one attempt, and returns what the handler reported and its error.
func run(ctx context.Context, cfg isolate.Config, cmd isolate.Command) (queue.Reported, error) {
	j := &queue.Job[isolate.Command]{Attempt: &queue.Attempt{Task: task()}, Args: cmd}
	err := isolate.Commands(cfg)(ctx, j)
	return j.Reported(), err
}

func sh(script string) isolate.Command { return isolate.Command{Args: []string{"sh", "-c", script}} }

// A command gets its arguments, directory, environment and input; its output goes to the
// log, and its exit is stored as the result.
func TestC9_Command(t *testing.T) {
	var l log
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := sh(`pwd; echo "$GREETING $1"; cat; echo " to stderr" >&2; echo $STINT_TOKEN; echo ${STINT_TASK:+has a task}`)
	cmd.Args = append(cmd.Args, "sh", "you")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"GREETING=hello"}, []byte(strings.Repeat("x", 200_000))
	got, err := run(t.Context(), isolate.Config{Log: l.open}, cmd)
	if err != nil {
		t.Fatal(err)
	}
	want := dir + "\nhello you\n" + strings.Repeat("x", 200_000) + " to stderr\n42\nhas a task\n"
	if l.String() != want || l.closed != 1 {
		t.Errorf("the log has %d bytes, %.100q, closed %d times", l.Len(), l.String(), l.closed)
	}
	exit, ok := isolate.ExitOf(&queue.Task{State: queue.Succeeded, Result: got.Result})
	if want := (isolate.Exit{Output: int64(len(want))}); exit != want || !ok {
		t.Errorf("result %+v, want %+v", exit, want)
	}
}

// A command that misbehaves fails the attempt with an error that says how it ended.
func TestC9_CommandsThatMisbehave(t *testing.T) {
	for _, row := range []struct {
		name, script string
		says         string
		code         int
		cfg          isolate.Config
	}{
		{name: "exit 3", script: "echo last words; exit 3", says: "exit status 3\nlast words", code: 3},
		{name: "segfault", script: "kill -SEGV $$", says: "ended by a signal: segmentation fault", code: 139},
		{name: "kill -9", script: "kill -9 $$", says: "ended by a signal: killed", code: 137},
		{
			name: "kill its group", script: "sleep 1000 & kill -9 0", says: "ended by a signal: killed", code: 137,
		},
		{
			name: "too long", script: "echo begun; sleep 1000", says: "time limit: it was not done after 100ms\nbegun",
			code: 124, cfg: isolate.Config{Time: 100 * time.Millisecond},
		},
		{
			name: "too long, and ends well", script: "trap 'exit 0' TERM; sleep 1000 & wait",
			says: "time limit", code: 124, cfg: isolate.Config{Time: 100 * time.Millisecond},
		},
		{
			name: "ignores SIGTERM", script: "trap '' TERM; sleep 1000", says: "time limit", code: 124,
			cfg: isolate.Config{Time: 100 * time.Millisecond, Grace: 100 * time.Millisecond},
		},
		{
			name: "stopped", script: "trap 'echo orderly; exit 0' TERM; kill -STOP $$", code: 124,
			says: "time limit: it was not done after 100ms\norderly",
			cfg:  isolate.Config{Time: 100 * time.Millisecond},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := run(t.Context(), row.cfg, sh(row.script))
			exitError, ok := errors.AsType[*isolate.ExitError](err)
			if !ok || retry.IsPermanent(err) || !strings.HasPrefix(err.Error(), row.says) {
				t.Fatalf("it says %v, want %q", err, row.says)
			}
			exit, ok := isolate.ExitOf(&queue.Task{State: queue.Dead, Checkpoint: got.Checkpoint})
			if !ok || exit != exitError.Exit || exit.Code() != row.code {
				t.Errorf("it ended with %+v, %t: code %d, want %d", exit, ok, exit.Code(), row.code)
			}
		})
	}
}

// All processes of a group count towards its memory, and end with it.
func TestC9_CommandMemory(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"one": eater(slightlyMore),
		"two": "{ " + eater(room/10*7) + "; } & echo $! > $0; " + eater(room/10*7),
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			cmd := sh(script)
			cmd.Args = append(cmd.Args, path)
			_, err := run(t.Context(), isolate.Config{Memory: room}, cmd)
			exit, ok := errors.AsType[*isolate.ExitError](err)
			if !ok || exit.Limit != isolate.LimitMemory || !strings.HasPrefix(err.Error(), "memory limit: its processes had ") {
				t.Fatal(err)
			}
			if name == "two" {
				wantGone(t, awaitFile(t, path), false)
			}
		})
	}
	// The limit allows reserved memory that is not used, up to about twice the limit.
	if _, err := run(t.Context(), isolate.Config{Memory: room}, isolate.Command{
		Args: []string{self, "-test.run", "^$"},
	}); err != nil {
		t.Error(err)
	}
}

// A process that allocates far more than the limit between two measurements gets an error
// from the system.
func TestC9_CommandMemoryAtOnce(t *testing.T) {
	script := "head -c 1000000000 /dev/zero | tail -c 999999999 | wc -c" // tail keeps it all
	_, err := run(t.Context(), isolate.Config{Memory: 50 << 20}, sh("set -e; "+script+"; exit 9"))
	exit, ok := errors.AsType[*isolate.ExitError](err)
	if !ok || exit.Limit != isolate.LimitMemory && !strings.Contains(exit.Tail, "memory") {
		t.Errorf("it ended with %v", err)
	}
}

// The log keeps the end of an output beyond the limit, and the command does not block.
func TestC9_CommandOutput(t *testing.T) {
	const much = 100 << 20
	var l log
	script := fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; echo end", much)
	got, err := run(t.Context(), isolate.Config{Log: l.open, Output: 1000}, sh(script+"; exit 1"))
	if err == nil || !strings.HasSuffix(err.Error(), "x\nend") {
		t.Errorf("error %.100v", err)
	}
	want := strings.Repeat("x", 500) +
		"\n[the limit on output is reached: the last 500 bytes follow when the attempt ends]\n" +
		fmt.Sprintf("[%d bytes are missing here]\n", much+5-500-500) + strings.Repeat("x", 495) + "\nend\n"
	if l.String() != want {
		t.Errorf("the log has %d bytes, ending in %q", l.Len(), l.String()[max(l.Len()-50, 0):])
	}
	exit, _ := isolate.ExitOf(&queue.Task{Checkpoint: got.Checkpoint})
	lost := fmt.Sprintf("%d bytes in the middle, because the limit on output was reached", much+5-1000)
	if exit.Output != much+5 || exit.Lost != lost {
		t.Errorf("%+v", exit)
	}
}

// If the log cannot be written, only its content is lost; if it cannot be opened, the
// attempt fails before the command starts.
func TestC9_CommandLogFails(t *testing.T) {
	full := func(context.Context, *queue.Task) (io.WriteCloser, error) {
		return os.OpenFile("/dev/full", os.O_WRONLY, 0)
	}
	got, err := run(t.Context(), isolate.Config{Log: full}, sh("echo one; echo two"))
	exit, _ := isolate.ExitOf(&queue.Task{State: queue.Succeeded, Result: got.Result})
	if err != nil || exit.Output != 8 || !strings.Contains(exit.Lost, "no space left") {
		t.Errorf("%+v, %v", exit, err)
	}
	ran := file(t)
	_, err = run(t.Context(), isolate.Config{Log: noLog}, sh("echo > "+ran))
	if _, missing := os.Stat(ran); !errors.Is(err, syscall.ENOSPC) || missing == nil || retry.IsPermanent(err) {
		t.Errorf("error %v, and it has run: %t", err, missing == nil)
	}
}

// No process of a group is left when the attempt is over, however it ended.
func TestC9_CommandLeavesNothing(t *testing.T) {
	const family = `trap '' TERM HUP INT
		(sh -c 'trap "" TERM; echo $$ >> '$1'; sleep 1000; sleep 1000' & sleep 1000; sleep 1000) &
		echo $! >> $1; until test $(wc -l < $1) = 2; do sleep 0.01; done; `
	for name, end := range map[string]string{
		"success": "exit 0", "failure": "exit 1", "a signal": "kill -9 $$", "its time": "wait; wait",
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			cmd := sh(family + end)
			cmd.Args = append(cmd.Args, "sh", path)
			_, err := run(t.Context(), isolate.Config{Time: time.Second, Grace: 50 * time.Millisecond}, cmd)
			if (err == nil) != (name == "success") {
				t.Error(err)
			}
			wantGone(t, awaitFile(t, path), false)
		})
	}
}

// A process that leaves the group is not killed, and the attempt does not wait for it.
func TestC9_CommandThatLeaves(t *testing.T) {
	path := file(t)
	cmd := sh("setsid sh -c 'echo $$ > " + path + ".new; mv " + path + ".new " + path + "; sleep 1000' & " +
		"until test -e " + path + "; do sleep 0.01; done")
	cmd.Stdin = bytes.Repeat([]byte("x"), 1<<20)
	if _, err := run(t.Context(), isolate.Config{}, cmd); err != nil {
		t.Error(err)
	}
	pid := strings.TrimSpace(awaitFile(t, path))
	if out, _ := os.ReadFile("/proc/" + pid + "/stat"); len(out) == 0 {
		t.Error("it has ended")
	}
	if _, err := run(t.Context(), isolate.Config{}, sh("kill -9 -"+pid)); err != nil {
		t.Error(err)
	}
}

// A group is ordered to end when the context of its task ends, and its attempt fails. A
// group whose lease is lost is killed.
func TestC9_CommandEndsWithItsContext(t *testing.T) {
	for end, cause := range map[string]error{"orderly\n": queue.ErrCancelled, "": queue.ErrStale} {
		t.Run(cause.Error(), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			path := file(t)
			go func() {
				awaitFile(t, path)
				cancel(cause)
			}()
			script := "trap 'echo orderly; exit 0' TERM; echo > " + path + "; sleep 1000 & wait"
			_, err := run(ctx, isolate.Config{}, sh(script))
			exit, ok := errors.AsType[*isolate.ExitError](err)
			if !ok || exit.Limit != isolate.LimitTask || exit.Tail != end {
				t.Errorf("%v", err)
			}
		})
	}
}

// The Timeout of a task is a time limit like that of the configuration.
func TestC9_TimeoutOfACommand(t *testing.T) {
	for timeout, want := range map[time.Duration]isolate.Limit{time.Hour: isolate.LimitTime, 0: isolate.LimitTask} {
		ctx, cancel := context.WithCancelCause(t.Context())
		path := file(t)
		go func() {
			awaitFile(t, path)
			cancel(context.DeadlineExceeded)
		}()
		j := &queue.Job[isolate.Command]{Attempt: &queue.Attempt{Task: task()}, Args: sh("echo > " + path + "; sleep 1000")}
		j.Timeout = timeout
		err := isolate.Commands(isolate.Config{Time: 2 * time.Hour})(ctx, j)
		exit, ok := errors.AsType[*isolate.ExitError](err)
		timed := want == isolate.LimitTime
		if !ok || exit.Limit != want || timed != (exit.Code() == 124) ||
			timed && exit.Error() != "time limit: it was not done after 1h0m0s" {
			t.Errorf("with a Timeout of %s: %v", timeout, err)
		}
	}
}

// A command that can never run is a permanent failure, whose error says why.
func TestC9_CommandsThatCannotRun(t *testing.T) {
	plain, dir := file(t), t.TempDir()
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo hi\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		cmd  isolate.Command
		says string
		code int
	}{
		{isolate.Command{}, "there is no program in it", 0},
		{isolate.Command{Args: []string{"no-such-program"}}, "executable file not found", 127},
		{isolate.Command{Args: []string{plain}}, "permission denied", 126},
		{isolate.Command{Args: []string{script}}, "exec format error", 126},
		{isolate.Command{Args: []string{"./script"}, Dir: dir}, "exec format error", 126},
		{isolate.Command{Args: []string{"true"}, Dir: "relative"}, "make it an absolute path", 0},
		{isolate.Command{Args: []string{"true"}, Dir: plain}, "not a directory", 126},
		{isolate.Command{Args: []string{"true"}, Dir: dir + "/none"}, "no such file", 127},
		{isolate.Command{Args: []string{"a\x00b"}}, "NUL", 0},
		{isolate.Command{Args: []string{"a\xff"}}, "not text in UTF-8", 0},
		{isolate.Command{Args: []string{"true"}, Env: []string{"A=b", "=secret"}}, "variable 2 of its environment", 0},
		{isolate.Command{Args: []string{"true"}, Env: []string{"KEY=secret\xff"}}, `variable "KEY" of its environment`, 0},
		{isolate.Command{Args: []string{"true", strings.Repeat("x", 1<<20)}}, "argument list too long", 126},
	} {
		got, err := run(t.Context(), isolate.Config{}, row.cmd)
		if err == nil || !retry.IsPermanent(err) || !strings.Contains(err.Error(), row.says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: %.200v, want a permanent error with %q", row.cmd.Args, err, row.says)
		}
		exit, ok := isolate.ExitOf(&queue.Task{Checkpoint: got.Checkpoint})
		if ok != (row.code != 0) || exit.Code() != row.code {
			t.Errorf("%.60q: code %d, want %d", row.cmd.Args, exit.Code(), row.code)
		}
	}
}

func TestC9_ConfigIsChecked(t *testing.T) {
	for _, cfg := range []isolate.Config{{Memory: -1}, {Memory: 1000}, {Time: -1}, {Output: -1}, {Grace: -1}} {
		err := cfg.Validate()
		func() {
			defer func() {
				if got := recover(); got == nil || !errors.Is(err, queue.ErrInvalid) {
					t.Errorf("%+v: Validate %v, Commands panics with %v", cfg, err, got)
				}
			}()
			isolate.Commands(cfg)
		}()
	}
}
