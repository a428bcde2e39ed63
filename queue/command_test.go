package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/queuetest"
	"github.com/stintgo/stint/retry"
)

// commands are the calls that command one task.
func commands(q *queue.Queue) map[string]func(context.Context, queue.ID) error {
	return map[string]func(context.Context, queue.ID) error{
		"pause": q.Pause, "resume": q.Resume, "cancel": q.Cancel, "retry": q.Retry,
	}
}

// inState returns a task in a state. The rig must be running.
func (r *rig) inState(state queue.State) queue.ID {
	r.Helper()
	var id queue.ID
	switch state {
	case queue.Scheduled:
		id = r.submit("waits", queue.Options{RunAt: time.Now().Add(time.Hour)})
	case queue.Held:
		id = r.submit("waits", queue.Options{After: []queue.ID{r.submit("nobody's", queue.Options{})}})
	case queue.Waiting:
		id = r.submit("nobody's", queue.Options{})
	case queue.Running:
		id = r.submit("waits", queue.Options{})
	case queue.Paused:
		id = r.submit("nobody's", queue.Options{})
		r.command(queue.OrderPause, id)
	case queue.Succeeded:
		id = r.submit("succeeds", queue.Options{})
	case queue.Dead:
		id = r.submit("fails", queue.Options{})
	case queue.Cancelled:
		id = r.submit("nobody's", queue.Options{})
		r.command(queue.OrderCancel, id)
	}
	r.is(id, state)
	return id
}

// runsAll starts a rig with handlers for the kinds that inState submits.
func runsAll(t *testing.T, cfg queue.Config) *rig {
	t.Helper()
	r := newRig(t, 20, cfg)
	r.Handle("waits", func(ctx context.Context, _ *queue.Attempt) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	r.Handle("succeeds", func(context.Context, *queue.Attempt) error { return nil })
	r.Handle("fails", func(context.Context, *queue.Attempt) error { return retry.Permanent(errors.New("it fails")) })
	r.start()
	return r
}

// Each command in each state does what it says, or answers ErrState with the state; a
// second call of one that was carried out is answered nil again.
func TestC4_CommandsOfOneTask(t *testing.T) {
	refused := map[string][]queue.State{
		"pause":  {queue.Succeeded, queue.Dead, queue.Cancelled},
		"resume": {queue.Succeeded, queue.Dead, queue.Cancelled},
		"cancel": {queue.Succeeded, queue.Dead},
		"retry":  {queue.Running, queue.Paused, queue.Succeeded},
	}
	after := map[string][]queue.State{
		"pause": {queue.Paused}, "cancel": {queue.Cancelled},
		"resume": {queue.Scheduled, queue.Held, queue.Waiting, queue.Running},
		"retry":  {queue.Held, queue.Waiting, queue.Running, queue.Dead}, // dead or running: again
	}
	synctest.Test(t, func(t *testing.T) {
		r := runsAll(t, queue.Config{})
		for name, call := range commands(r.Queue) {
			for _, from := range queue.States() {
				id := r.inState(from)
				err := call(t.Context(), id)
				if slices.Contains(refused[name], from) {
					want := fmt.Sprintf("cannot %s task %s: it is %s", name, id, from)
					if !errors.Is(err, queue.ErrState) || !strings.Contains(err.Error(), want) {
						t.Errorf("%s of a task that is %s is answered %v, want %q", name, from, err, want)
					}
					r.is(id, from)
					continue
				}
				synctest.Wait()
				task, getErr := r.Get(t.Context(), id)
				if err != nil || getErr != nil || !slices.Contains(after[name], task.State) {
					t.Errorf("%s of a task that was %s: error %v, and it is %s", name, from, err, task.State)
				}
				if name != "retry" {
					if err := call(t.Context(), id); err != nil {
						t.Errorf("a second %s of a task that was %s is answered %v", name, from, err)
					}
				}
			}
		}
		r.end()
	})
}

// A task that is not there is ErrNotFound.
func TestC4_CommandsOfUnknownTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		for name, call := range commands(r.Queue) {
			for _, id := range []queue.ID{r.NewID(), {}} {
				if err := call(t.Context(), id); !errors.Is(err, queue.ErrNotFound) {
					t.Errorf("%s of task %s, which is not there, is answered %v", name, id, err)
				}
			}
		}
	})
}

// A running task that ends slowly has its order: a second one of the same kind is no
// error, one that contradicts a cancel is.
func TestC4_CommandsOfATaskThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		r.Handle("slow", func(ctx context.Context, _ *queue.Attempt) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return context.Cause(ctx)
		})
		r.start()
		id := r.submit("slow", queue.Options{})
		r.is(id, queue.Running)
		for _, step := range []struct {
			call  func(context.Context, queue.ID) error
			wants string // of the error; "" is nil
		}{
			{r.Pause, ""},
			{r.Pause, ""},
			{r.Resume, ""},
			{r.Resume, ""},
			{r.Cancel, ""},
			{r.Cancel, ""},
			{r.Pause, "it is running and has been ordered to cancel"},
			{r.Resume, "it is running and has been ordered to cancel"},
		} {
			err := step.call(t.Context(), id)
			if (err == nil) != (step.wants == "") || !strings.Contains(fmt.Sprint(err), step.wants) {
				t.Errorf("the answer is %v, want %q", err, step.wants)
			}
		}
		time.Sleep(2 * time.Minute)
		r.is(id, queue.Cancelled)
		r.end()
	})
}

// A task that changes between the command and the look at it is commanded again.
func TestC4_CommandOfATaskThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var meanwhile func()
		q := queuetest.New(t, queue.Config{}, func(_ context.Context, call string, do func() error) error {
			err := do()
			if f := meanwhile; call == "Command" && f != nil {
				meanwhile = nil
				f()
			}
			return err
		})
		receipt, err := queue.Kind[string]("k").Submit(t.Context(), q, "", queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Pause(t.Context(), receipt.ID); err != nil {
			t.Fatal(err)
		}
		meanwhile = func() {
			if err := q.Cancel(t.Context(), receipt.ID); err != nil {
				t.Error(err)
			}
		}
		if err := q.Retry(t.Context(), receipt.ID); err != nil {
			t.Error(err)
		}
		if task, err := q.Get(t.Context(), receipt.ID); err != nil || task.State != queue.Waiting {
			t.Errorf("the task is %s, error %v; want it retried", task.State, err)
		}
	})
}
