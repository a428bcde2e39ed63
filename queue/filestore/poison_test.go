//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

const (
	killsItsProcess = "kills its process"
	harmless        = "harmless"
	killsAllBeside  = "kills all that run beside it"
	innocent        = "innocent"
)

// beside is how many tasks run beside one that kills their process.
const beside = 8

// lastCrash is how many crashes a task survives.
const lastCrash = 2

// runQueue works on all tasks of a store until none is left, on some slots.
func runQueue(dir string, slots int) {
	s, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		panic(err)
	}
	q := queue.New(s, queue.Config{Poll: 10 * time.Millisecond})
	q.Handle(killsItsProcess, func(context.Context, *queue.Attempt) error {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	q.Handle(harmless, func(context.Context, *queue.Attempt) error { return nil })
	var begun sync.WaitGroup // those that are to be killed beside it
	begun.Add(beside)
	q.Handle(killsAllBeside, func(_ context.Context, a *queue.Attempt) error {
		if a.Crashes < lastCrash {
			begun.Wait()
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
	q.Handle(innocent, func(ctx context.Context, a *queue.Attempt) error {
		if a.Crashes < lastCrash {
			begun.Done()
			<-ctx.Done()
		}
		return ctx.Err()
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, stint.New(slots, stint.Config{})) }()
	for task, err := range q.Find(ctx, queue.Filter{}) {
		if err == nil {
			_, err = q.Wait(ctx, task.ID)
		}
		if err != nil {
			panic(err)
		}
	}
	stop()
	if err := errors.Join(<-ended, s.Close()); !errors.Is(err, context.Canceled) {
		panic(err)
	}
}

// TestC9_KillsItsProcess: a task that kills the only process of its queue is put
// aside after three starts, the others succeed, and the same work, submitted
// again, is put aside at once.
func TestC9_KillsItsProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := newTasks(t, openDir(t, dir))
	c.now = time.Now()
	poison := c.add(killsItsProcess)
	others := []queue.ID{c.add(harmless), c.add(harmless), c.add(harmless)}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	killsThree(t, doRunQueue, dir)
	c.store = openDir(t, dir)
	again := c.add(killsItsProcess)
	tasks, err := all(t.Context(), c.store)
	if err := errors.Join(err, c.store.Close()); err != nil {
		t.Fatal(err)
	}
	if got := tasks[poison]; got.State != queue.Dead || got.Crashes != 3 || got.Failures != 0 {
		t.Errorf("the task is %s with %d crashes and %d failures", got.State, got.Crashes, got.Failures)
	}
	for _, id := range others {
		if got := tasks[id]; got.State != queue.Succeeded {
			t.Errorf("another task is %s, and its error is %q", got.State, got.Error)
		}
	}
	if got := tasks[again]; got.State != queue.Dead || !strings.Contains(got.Error, poison.String()) {
		t.Errorf("the same work is %s, and its error is %q", got.State, got.Error)
	}
}

// killsThree starts a process again and again until it comes to its end. Three have
// to be killed by what they work on.
func killsThree(t *testing.T, does, dir string) {
	t.Helper()
	kills := 0
	for {
		cmd := process(t, does, dir)
		err := cmd.Run()
		if err == nil {
			break
		}
		if kills++; kills > 5 || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("start %d of the process ends with %v", kills, err)
		}
	}
	if kills != lastCrash+1 {
		t.Errorf("%d processes were killed, and not %d", kills, lastCrash+1)
	}
}

// TestC9_KillsAllBesideIt: tasks that ran in the processes that another one has
// killed are tried one by one, and are not put aside with it.
func TestC9_KillsAllBesideIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := newTasks(t, openDir(t, dir))
	c.now = time.Now()
	var innocents []queue.ID
	for range beside / 2 {
		innocents = append(innocents, c.add(innocent))
	}
	poison := c.add(killsAllBeside)
	for range beside - beside/2 {
		innocents = append(innocents, c.add(innocent))
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	killsThree(t, doRunBeside, dir)
	c.store = openDir(t, dir)
	tasks, err := all(t.Context(), c.store)
	if err := errors.Join(err, c.store.Close()); err != nil {
		t.Fatal(err)
	}
	if got := tasks[poison]; got.State != queue.Dead || got.Crashes != lastCrash+1 {
		t.Errorf("the one to blame is %s with %d crashes", got.State, got.Crashes)
	}
	for _, id := range innocents {
		got, lost := tasks[id], 0
		for _, step := range got.Steps {
			if step.On == queue.OnLost {
				lost++
			}
		}
		if got.State != queue.Succeeded || got.Crashes != 0 || lost != lastCrash {
			t.Errorf("an innocent one is %s, with %d crashes; %d of its workers were lost", got.State, got.Crashes, lost)
		}
	}
}

// add submits a task of a kind.
func (c *tasks) add(kind string) queue.ID {
	c.t.Helper()
	id := c.ids.New(c.now)
	task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: kind}}
	if _, err := c.store.Submit(c.t.Context(), c.now, []queue.NewTask{task}); err != nil {
		c.t.Fatal(err)
	}
	return id
}
