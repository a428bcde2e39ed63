//go:build linux

package isolate_test

import (
	"context"
	"errors"
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

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// argWorker, as the first argument, makes the test binary a worker for a test to kill.
const argWorker = "test-worker"

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for child processes: the race detector sleeps 1 s at each exit
	isolate.Main(misbehave, greedy, plain, broken)
	if len(os.Args) > 1 && os.Args[1] == argWorker {
		work(os.Args[2:])
	}
	os.Exit(m.Run())
}

// eaten keeps the memory of greedy reachable.
var eaten []byte

// eater returns a script that holds the given number of bytes in memory: tail has to
// buffer them until the end of its input.
func eater(bytes int) string {
	return fmt.Sprintf("{ head -c %d /dev/zero; sleep 1000; } | tail -c %d", bytes, bytes)
}

// slightlyMore is above the memory limit of room bytes and below its RLIMIT_DATA.
const slightlyMore = room / 10 * 13

// order is the payload of the handlers here.
type order struct {
	Do   string
	File string
}

// misbehave crashes, exits, hangs or leaves processes, as its payload says.
var misbehave = isolate.NewHandler("misbehave",
	isolate.Config{Grace: 200 * time.Millisecond, Time: time.Minute},
	func(ctx context.Context, j *queue.Job[order]) error {
		switch j.Args.Do {
		case "segfault":
			defer func() { <-ctx.Done() }() // the signal is on its way
			return syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		case "kill":
			defer func() { <-ctx.Done() }()
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "exit 3":
			fmt.Println("last words")
			os.Exit(3)
		case "exit 0":
			os.Exit(0)
		case "panic":
			panic("boom")
		case "fatal":
			go func() { panic("in another goroutine") }()
			select {}
		case "goexit":
			runtime.Goexit()
		case "garbage":
			f := os.NewFile(3, "answers")
			_, err := f.WriteString("\x00\x00\x00\x05{][}\n")
			return err
		case "hang":
			write(j.Args.File, strconv.Itoa(os.Getpid()))
			select {}
		case "leave a process":
			cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000")
			if err := cmd.Start(); err != nil {
				return err
			}
			write(j.Args.File, strconv.Itoa(cmd.Process.Pid))
		}
		return nil
	})

// greedy exceeds its memory limit.
var greedy = isolate.NewHandler("greedy", isolate.Config{Memory: room},
	func(ctx context.Context, j *queue.Job[order]) error {
		if j.Args.Do == "at once" {
			eaten = make([]byte, 3*room)
		}
		return exec.CommandContext(ctx, "sh", "-c", eater(slightlyMore)).Run()
	})

// plain reports, returns errors or waits, as its payload says.
var plain = isolate.NewHandler("plain", isolate.Config{}, func(ctx context.Context, j *queue.Job[order]) error {
	switch j.Args.Do {
	case "report":
		j.Report(queue.Progress{Done: 1, Total: 2, Note: string(j.Checkpoint)})
		j.Save([]byte("from here"))
		return j.Return(map[string]any{"task": j.ID, "env": os.Getenv(isolate.EnvTask), "failures": j.Failures})
	case "report while running":
		j.Report(queue.Progress{Done: 7})
		j.Save(nil)
		<-ctx.Done()
		return nil
	case "sync":
		j.Save([]byte("first"))
		j.Save([]byte("second"))
		err := j.Sync(ctx)
		write(j.Args.File, fmt.Sprint(err))
		<-ctx.Done()
		j.Save([]byte("third"))
		err = j.Sync(context.WithoutCancel(ctx))
		write(j.Args.File+".end", fmt.Sprint(err))
		return errors.New("ended")
	case "sync too much":
		j.Save(make([]byte, 100))
		err := j.Sync(context.WithoutCancel(ctx))
		<-ctx.Done()
		write(j.Args.File, fmt.Sprint(errors.Is(err, queue.ErrTooLarge), errors.Is(context.Cause(ctx), queue.ErrTooLarge)))
	case "permanent":
		return retry.Permanent(errors.New("never"))
	case "after":
		return retry.After(time.Hour, errors.New("in an hour"))
	case "snooze":
		return queue.Snooze(time.Minute)
	case "snooze for a shortage":
		return queue.Shortage(fmt.Errorf("the disk is full: %w", queue.Snooze(time.Minute)))
	case "shortage":
		return queue.Shortage(errors.New("the disk is full"))
	case "fail":
		return errors.New("plainly")
	case "wait":
		write(j.Args.File, "here")
		<-ctx.Done()
		return fmt.Errorf("ended: %w", context.Cause(ctx))
	}
	return nil
})

// broken cannot open its log.
var broken = isolate.NewHandler("broken", isolate.Config{Log: noLog}, nothing)

func nothing(context.Context, *queue.Job[order]) error { return nil }

func write(path, text string) {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".new", path); err != nil { // so that the file appears complete
		panic(err)
	}
}

// awaitFile waits until a file exists, and returns its content.
func awaitFile(t *testing.T, path string) string {
	t.Helper()
	for range 1000 {
		if b, err := os.ReadFile(path); err == nil {
			return string(b)
		}
		pause()
	}
	t.Errorf("%s does not exist", path)
	return ""
}

// pause is the interval at which tests poll real processes.
func pause() { <-time.After(20 * time.Millisecond) }

// gone reports whether a process has ended. Zombies count as ended: in a container
// without an init process, orphans are never reaped.
func gone(pid int) bool {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest == "" || rest[0] == 'Z' || rest[0] == 'X'
}

// wantGone fails the test for each process of text, a list of numbers, that has not
// ended. If wait is set, it first waits for their end.
func wantGone(t *testing.T, text string, wait bool) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for try := 0; wait && try < 1000 && !gone(pid); try++ {
			pause()
		}
		if !gone(pid) {
			t.Errorf("process %d still runs", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func task() queue.Task {
	ids := queue.IDs{}
	return queue.Task{ID: ids.New(time.Now()), State: queue.Running, Lease: queue.Lease{Token: 42}}
}

// file returns the path of a file that does not exist yet.
func file(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "file")
}
