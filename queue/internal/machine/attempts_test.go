package machine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// A settle without a token is stale, also if the task has a step without a token.
func TestC6_SettleWithoutAToken(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	pause := queue.Command{Do: queue.OrderPause, All: true}
	if _, err := p.Command(t.Context(), start, pause); err != nil {
		t.Fatal(err)
	}
	if err := p.settle(queue.Task{ID: id}, queue.OutcomeRelease); !errors.Is(err, queue.ErrStale) {
		t.Errorf("a settle without a token returns %v, want ErrStale", err)
	}
}

// A task that is released because of an order to pause is paused, and dies at its deadline
// as other paused tasks do.
func TestC4_DeadlineOfATaskThatIsPausedWhileItRuns(t *testing.T) {
	p := newProcess(t)
	task := newTask(&p.ids, queue.Spec{Options: queue.Options{Deadline: start.Add(time.Minute)}})
	submit(t, p.Machine, task)
	running := p.one(true)
	if _, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderPause, All: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.settle(running, queue.OutcomeRelease); err != nil {
		t.Fatal(err)
	}
	if got := p.task(task.ID).State; got != queue.Paused {
		t.Fatalf("the task is %s, want paused", got)
	}
	if _, err := p.Maintain(t.Context(), start.Add(time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	if got := p.task(task.ID).State; got != queue.Dead {
		t.Errorf("after its deadline the task is %s, want dead", got)
	}
}

// A claim whose tasks are not durable in time, because the rows are stalled, is undone:
// its tasks can be claimed as soon as they are durable.
func TestC6_ClaimOfStalledRowsIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &steppedRows{rows: newRows()}
		stalled := make(chan struct{})
		m, err := machine.Open(r, machine.Config{
			Room:    func() error { return nil },
			Stalled: func() <-chan struct{} { return stalled },
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids queue.IDs
		r.gate = make(chan struct{})
		submitted := make(chan error)
		go func() {
			_, err := m.Submit(t.Context(), start, []queue.NewTask{newTask(&ids, queue.Spec{})})
			submitted <- err
		}()
		synctest.Wait()
		claimed := make(chan error)
		c := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute}
		go func() {
			_, err := m.Claim(t.Context(), start, c)
			claimed <- err
		}()
		synctest.Wait()
		close(stalled)
		if err := errors.Join(<-submitted, nil); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("the submit returns %v, want ErrUnavailable", err)
		}
		if err := <-claimed; !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("the claim returns %v, want ErrUnavailable", err)
		}
		stalled = make(chan struct{})
		close(r.gate)
		synctest.Wait()
		if got, err := m.Claim(t.Context(), start, c); err != nil || len(got.Tasks) != 1 {
			t.Errorf("the next claim returns %d tasks, error %v; want the task", len(got.Tasks), err)
		}
	})
}
