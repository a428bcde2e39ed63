package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// Wait returns at the end of a task at once, without polling.
func TestC1_WaitForTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Poll: 24 * time.Hour})
		queue.Kind[int]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[int]) error {
			time.Sleep(time.Duration(j.Args) * time.Second)
			return j.Return(j.Args * 2)
		})
		r.start()
		begun := time.Now()
		var all sync.WaitGroup
		const tasks = 10
		for n := range tasks {
			receipt, err := queue.Kind[int]("k").Submit(t.Context(), r.Queue, n, queue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				task, err := r.Wait(t.Context(), receipt.ID)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := queue.Result[int](task); err != nil || got != 2*n {
					t.Errorf("result %d, error %v; want %d", got, err, 2*n)
				}
				if took, want := time.Since(begun), time.Duration(n*(n+1)/2)*time.Second; took < want || took > want+time.Second/2 {
					t.Errorf("the wait for task %d took %s, want %s", n, took, want)
				}
			})
		}
		all.Wait()
		r.end()
	})
}

// Wait reads the task when its watch begins, at each event of the task and at each poll, so
// a task that ends before the watch begins is not missed.
func TestC1_WaitAsksWhenThereIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Poll: 24 * time.Hour})
		var finds atomic.Int64
		var late time.Duration // until a watch begins
		store.before = func(call string) error {
			switch call {
			case "watch":
				time.Sleep(late)
			case "find":
				finds.Add(1)
			}
			return nil
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		r.start()
		for _, late = range []time.Duration{0, 10 * time.Second} {
			finds.Store(0)
			begun := time.Now()
			task, err := r.Wait(t.Context(), r.submit("k", queue.Options{}))
			if err != nil || task.State != queue.Succeeded {
				t.Errorf("state %s, error %v", task.State, err)
			}
			if took := time.Since(begun); took != max(5*time.Second, late) {
				t.Errorf("with a watch that begins after %s, the wait took %s", late, took)
			}
			if n := finds.Load(); n > 3 {
				t.Errorf("with a watch that begins after %s, the store is asked %d times", late, n)
			}
		}
		r.end()
	})
}

func TestC1_WaitEndsOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		id := r.submit("k", queue.Options{})
		if _, err := r.Wait(t.Context(), r.NewID()); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("no such task: error %v", err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Hour, errOver)
		defer stop()
		if task, err := r.Wait(ctx, id); !errors.Is(err, errOver) || task.State != queue.Waiting {
			t.Errorf("state %s, error %v; want that it waits, and the cause", task.State, err)
		}
		gone := make(chan error)
		go func() {
			_, err := r.Wait(t.Context(), id)
			gone <- err
		}()
		synctest.Wait()
		r.command(queue.OrderCancel, id)
		if err := <-gone; err != nil {
			t.Errorf("cancelled: error %v", err)
		}
		task := r.is(id, queue.Cancelled)
		_, err := queue.Result[int](task)
		if !errors.Is(err, queue.ErrNoResult) || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("result of a cancelled task: error %v", err)
		}
	})
}

// A store that cannot be reached is waited out, and events that were missed are
// made up for.
func TestC1_WaitThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{})
		begun := time.Now()
		store.before = func(call string) error {
			if (call == "find" || call == "watch") && time.Since(begun) < time.Minute {
				return queue.ErrUnavailable
			}
			return nil
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { return retry.Permanent(errFault) })
		r.start()
		task, err := r.Wait(t.Context(), r.submit("k", queue.Options{}))
		if err != nil || task.State != queue.Dead {
			t.Errorf("state %s, error %v", task.State, err)
		}
		_, err = queue.Result[any](task)
		if !errors.Is(err, queue.ErrNoResult) || !strings.Contains(err.Error(), errFault.Error()) {
			t.Errorf("the result's error is %v, want one with the task's", err)
		}
		r.end() // a Run that finds its store closed returns ErrClosed
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wait(t.Context(), task.ID); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("error %v, want that the store is closed", err)
		}
	})
}
