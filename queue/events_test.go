package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// listen gathers events until the test is over; what it returns waits for the end
// of that, and returns them.
func (r *rig) listen() func() []queue.Event {
	ctx, stop := context.WithCancel(r.Context())
	var all []queue.Event
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e, err := range r.Events(ctx) {
			if err != nil {
				r.Error(err)
				return
			}
			all = append(all, e)
		}
	}()
	synctest.Wait()
	return func() []queue.Event {
		synctest.Wait()
		stop()
		<-over
		return all
	}
}

// The trace of all events, each in the table and each from where the one before
// it led, replays to the states that the tasks are in; and so do the steps that
// each task keeps.
func TestC4_TraceReplays(t *testing.T) {
	rnd := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5, queue.Config{Lease: 3 * time.Second, Retry: retry.Policy{Base: time.Second}})
		events := r.listen()
		var mu sync.Mutex
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return rnd.IntN(n) }
		r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error {
			select {
			case <-time.After(time.Duration(draw(3000)) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			return []error{nil, nil, nil, errFault, queue.Snooze(time.Second), retry.Permanent(errFault)}[draw(6)]
		})
		r.start()
		var ids []queue.ID
		orders := []queue.Order{queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget}
		for range 200 {
			spec := queue.Spec{Kind: "k", Options: queue.Options{Tier: 0, Key: fmt.Sprint(draw(3))}}
			switch draw(5) {
			case 0:
				spec.RunAt = time.Now().Add(2 * time.Second)
			case 1:
				spec.Group = "g"
			case 2:
				spec.Deadline = time.Now().Add(time.Second)
			case 3:
				spec.Kind = "nobody's"
			default:
			}
			ids = append(ids, r.prepared(spec))
			time.Sleep(time.Duration(draw(500)) * time.Millisecond)
			c := queue.Command{Do: orders[draw(5)], Filter: queue.Filter{IDs: []queue.ID{ids[draw(len(ids))]}}}
			if _, err := r.Command(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		r.end()
		replayed := replay(t, events())
		kinds := map[queue.Trigger]bool{}
		for _, id := range ids {
			task, err := r.Get(t.Context(), id)
			if errors.Is(err, queue.ErrNotFound) {
				if state, was := replayed[id]; !was || state != 0 {
					t.Errorf("task %s is gone, and the trace has it %s", id, state)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var steps []queue.Event
			from := queue.State(0)
			for _, step := range task.Steps {
				steps = append(steps, queue.Event{ID: id, From: from, Step: step})
				from, kinds[step.On] = step.To, true
			}
			if of := replay(t, steps)[id]; task.State != replayed[id] || task.State != of {
				t.Errorf("task %s is %s; the trace leads to %s, its steps to %s", id, task.State, replayed[id], of)
			}
		}
		if len(kinds) < 10 {
			t.Errorf("only %v have happened: this shows little", slices.Collect(maps.Keys(kinds)))
		}
	})
}

// replay follows events through the table, and returns where they lead.
func replay(t *testing.T, events []queue.Event) map[queue.ID]queue.State {
	t.Helper()
	states := map[queue.ID]queue.State{}
	var at time.Time
	for _, e := range events {
		if e.Missed != 0 || e.From != states[e.ID] || !queue.Allowed(e.From, e.On, e.To) || e.At.Before(at) {
			t.Fatalf("event %+v: the task was %s, and the event before at %s", e, states[e.ID], at)
		}
		states[e.ID], at = e.To, e.At
	}
	return states
}

// The loop over events ends when it is left, when its context ends, and with an
// error when the store is closed.
func TestC4_EventsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		got := make(chan queue.Event)
		go func() {
			for e, err := range r.Events(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				got <- e
				break
			}
			close(got)
		}()
		synctest.Wait()
		id := r.submit("k", queue.Options{})
		r.command(queue.OrderPause, id)
		if e := <-got; e.ID != id || e.On != queue.OnSubmit || e.To != queue.Waiting {
			t.Errorf("the first event is %+v", e)
		}
		if e, more := <-got; more {
			t.Errorf("after the loop was left it got %+v", e)
		}
		r.listen()()
		failed := make(chan error)
		go func() {
			for _, err := range r.Events(t.Context()) {
				failed <- err
			}
			close(failed)
		}()
		synctest.Wait()
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("error %v, want that the store is closed", err)
		}
		if err, more := <-failed; more {
			t.Errorf("and then %v", err)
		}
	})
}

// Each dead letter raises an event, and the hook receives it with its errors. A hook that
// is slow or panics delays no task.
func TestC3_HooksReceiveDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var dead []queue.Task
		triggers := map[queue.Trigger]int{}
		r := newRig(t, 2, queue.Config{
			OnEvent: func(_ context.Context, e queue.Event) {
				mu.Lock()
				triggers[e.On]++
				mu.Unlock()
				panic("the hook has a fault")
			},
			OnDead: func(_ context.Context, task queue.Task) {
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				dead = append(dead, task)
			},
		})
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			if a.Key == "bad" {
				return retry.Permanent(errFault)
			}
			return nil
		})
		r.start()
		var bad []queue.ID
		for range 2 { // one after the other
			bad = append(bad, r.submit("k", queue.Options{Key: "bad"}))
			r.is(bad[len(bad)-1], queue.Dead)
		}
		for range 20 {
			r.is(r.submit("k", queue.Options{}), queue.Succeeded) // though the hook sleeps
		}
		r.submit("k", queue.Options{Queue: "of others", Deadline: time.Now().Add(time.Second)})
		time.Sleep(3 * time.Hour)
		r.end()
		mu.Lock()
		defer mu.Unlock()
		if len(dead) != 2 || dead[0].ID != bad[0] || dead[1].ID != bad[1] || len(dead[0].Errors()) != 1 {
			t.Errorf("the hook received %d tasks, want the two of its queue: %+v", len(dead), dead)
		}
		if triggers[queue.OnSubmit] != 22 || triggers[queue.OnSuccess] != 20 || triggers[queue.OnFailure] != 2 {
			t.Errorf("events %v", triggers)
		}
	})
}
