//go:build linux

package isolate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// A handler in another process gets its task, and its reports arrive in the worker.
func TestC9_HandlerReports(t *testing.T) {
	tk := task()
	tk.Checkpoint, tk.Failures = []byte("from there"), 2
	j := &queue.Attempt{Task: tk}
	j.Payload = []byte(`{"Do":"report"}`)
	if err := plain.Run(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	got := j.Reported()
	result := fmt.Sprintf(`{"env":"%s","failures":2,"task":"%s"}`, tk.ID, tk.ID)
	if got.Progress != (queue.Progress{Done: 1, Total: 2, Note: "from there"}) || string(got.Checkpoint) != "from here" ||
		string(got.Result) != result {
		t.Errorf("progress %+v, checkpoint %q, result %s", got.Progress, got.Checkpoint, got.Result)
	}
}

// do runs an attempt in which h does what.
func do(ctx context.Context, h *isolate.Handler[order], what, path string) error {
	j := &queue.Attempt{Task: task()}
	j.Payload = fmt.Appendf(nil, `{"Do":%q,"File":%q}`, what, path)
	return h.Run(ctx, j)
}

// The error of a handler counts as it would in this process.
func TestC9_HandlerReturns(t *testing.T) {
	for what, check := range map[string]func(error) bool{
		"nothing": func(err error) bool { return err == nil },
		"fail":    func(err error) bool { return err.Error() == "plainly" && !retry.IsPermanent(err) },
		"permanent": func(err error) bool {
			return err.Error() == "never" && retry.IsPermanent(err)
		},
		"after": func(err error) bool {
			d, ok := retry.Delay(err)
			return ok && d == time.Hour && err.Error() == "in an hour"
		},
		"snooze": func(err error) bool {
			d, ok := queue.SnoozeDelay(err)
			return ok && d == time.Minute
		},
		"snooze for a shortage": func(err error) bool {
			d, ok := queue.SnoozeDelay(err)
			return queue.IsShortage(err) && ok && d == time.Minute
		},
		"shortage": func(err error) bool {
			return queue.IsShortage(err) && err.Error() == "the disk is full"
		},
	} {
		if err := do(t.Context(), plain, what, ""); !check(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	j := &queue.Attempt{Task: task()}
	j.Payload = []byte("{")
	if err := plain.Run(t.Context(), j); !retry.IsPermanent(err) || !strings.Contains(err.Error(), "payload") {
		t.Errorf("an invalid payload: %v", err)
	}
	if err := do(t.Context(), broken, "", ""); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("no log: %v", err)
	}
}

// Reports of a handler arrive while it runs, and its context ends with the cause of the
// task's context.
func TestC9_HandlerEndsWithItsContext(t *testing.T) {
	for _, cause := range []error{
		queue.ErrPaused, queue.ErrCancelled, queue.ErrStopping, context.DeadlineExceeded, errors.New("any other"),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		path := file(t)
		go func() {
			awaitFile(t, path)
			cancel(cause)
		}()
		want := cause
		if cause.Error() == "any other" {
			want = context.Canceled
		}
		if err := do(ctx, plain, "wait", path); err == nil || err.Error() != "ended: "+want.Error() {
			t.Errorf("%v: %v", cause, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	j := &queue.Attempt{Task: task()}
	j.Payload = []byte(`{"Do":"report while running"}`)
	ended := make(chan error)
	go func() { ended <- plain.Run(ctx, j) }()
	for range 1000 {
		if got := j.Reported(); got.Progress.Done == 7 && got.Saved == 1 && got.Checkpoint != nil {
			break
		}
		pause()
	}
	if got := j.Reported(); got.Progress.Done != 7 || got.Saved != 1 {
		t.Errorf("while it runs: %+v", got)
	}
	cancel(queue.ErrPaused)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Whatever a handler does to its process, the worker survives and gets an error.
func TestC9_HandlersThatMisbehave(t *testing.T) {
	for what, says := range map[string]string{
		"segfault": "exit status 2\n",
		"kill":     "ended by a signal: killed",
		"exit 3":   "exit status 3\nlast words",
		"exit 0":   "isolate: the handler's process exited before the handler returned, as by os.Exit(0): EOF",
		"panic":    "panic: boom\n\ngoroutine ",
		"fatal":    "exit status 2\npanic: in another goroutine",
		"goexit":   "the handler called runtime.Goexit",
		"garbage":  "isolate: the handler's process has written to its descriptor 3: invalid frame: ",
	} {
		t.Run(what, func(t *testing.T) {
			err := do(t.Context(), misbehave, what, "")
			if err == nil || !strings.HasPrefix(err.Error(), says) || retry.IsPermanent(err) {
				t.Errorf("it says %v, want %q", err, says)
			}
		})
	}
}

// A handler's process ends when it exceeds the memory limit, also if it allocates so much
// at once that the system refuses.
func TestC9_HandlerMemory(t *testing.T) {
	for what, says := range map[string]string{
		"slowly":  "memory limit: its processes had ",
		"at once": "(its memory was limited to ",
	} {
		if err := do(t.Context(), greedy, what, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: it says %v, want %q", what, err, says)
		}
	}
}

// A handler that ignores the end of its context is killed, and so are processes that a
// handler leaves behind.
func TestC9_HandlerLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	path := file(t)
	go func() {
		awaitFile(t, path)
		cancel(queue.ErrPaused)
	}()
	err := do(ctx, misbehave, "hang", path)
	exit, ok := errors.AsType[*isolate.ExitError](err)
	if !ok || exit.Limit != isolate.LimitTask || exit.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
	wantGone(t, awaitFile(t, path), false)
	path = file(t)
	if err := do(t.Context(), misbehave, "leave a process", path); err != nil {
		t.Error(err)
	}
	wantGone(t, awaitFile(t, path), false)
}

// Run panics if Main was not called with the handler.
func TestC9_HandlerThatMainDoesNotKnow(t *testing.T) {
	unknown := isolate.NewHandler("unknown", isolate.Config{}, nothing)
	another := isolate.NewHandler("plain", isolate.Config{}, nothing)
	for _, h := range []*isolate.Handler[order]{unknown, another} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "call isolate.Main first") {
					t.Errorf("it panics with %s", got)
				}
			}()
			_ = do(t.Context(), h, "", "")
		}()
	}
	if got := callMainAgain(); !strings.Contains(got, "has been called before") {
		t.Errorf("Main called twice panics with %q", got)
	}
}

// callMainAgain returns the panic of a second call of Main.
func callMainAgain() (got string) {
	defer func() { got = fmt.Sprint(recover()) }()
	isolate.Main()
	return ""
}

// A handler or watcher process that is started by hand exits with an error.
func TestC9_ProcessesByHand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for arg, says := range map[string]string{
		"__isolated-handler": "a worker starts this process by itself", "__watch-jobs": "stint starts this process by itself",
	} {
		_, err := run(t.Context(), isolate.Config{}, isolate.Command{Args: []string{self, arg, "x"}})
		exit, ok := errors.AsType[*isolate.ExitError](err)
		if !ok || exit.Status != 125 || !strings.Contains(exit.Tail, says) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// awaitNumbers waits until a file has at least n numbers, and returns them.
func awaitNumbers(t *testing.T, path string, n int) (numbers []int) {
	t.Helper()
	for range 1000 {
		numbers = nil
		b, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				numbers = append(numbers, pid)
			}
		}
		if len(numbers) >= n {
			return numbers
		}
		pause()
	}
	t.Fatalf("%s has %v, want %d numbers", path, numbers, n)
	return nil
}
