package machine_test

import (
	"errors"
	"fmt"
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

// A task that has failed and whose deadline passes before its next attempt has both errors.
func TestC8_DeadlineAfterAFailure(t *testing.T) {
	p := newProcess(t)
	late := queue.Options{Deadline: start.Add(time.Minute)}
	failed := newTask(&p.ids, queue.Spec{Options: late})
	submit(t, p.Machine, failed)
	running := p.one(true)
	o := queue.Outcome{
		ID: failed.ID, Token: running.Lease.Token, Kind: queue.OutcomeFailure, Error: "boom", RunAt: start.Add(time.Hour),
	}
	if answers, err := p.Settle(t.Context(), start, []queue.Outcome{o}); err != nil || answers[0] != nil {
		t.Fatal(answers, err)
	}
	fresh := newTask(&p.ids, queue.Spec{Options: late})
	submit(t, p.Machine, fresh)
	if _, err := p.Maintain(t.Context(), start.Add(time.Minute), 0); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[queue.ID]string{
		failed.ID: "its deadline passed before it started again; the last error: boom",
		fresh.ID:  "its deadline passed before it started",
	} {
		if got := p.task(id); got.State != queue.Dead || got.Error != want {
			t.Errorf("the task is %s with the error %q, want dead with %q", got.State, got.Error, want)
		}
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

// A claim in this process that waits for the rows while the machine is closed returns no tasks: their
// leases have been released.
func TestC6_ClaimWhileTheMachineIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &steppedRows{rows: newRows()}
		m, err := machine.Open(r, machine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var ids queue.IDs
		tasks := []queue.NewTask{newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{})}
		r.gate = make(chan struct{})
		go func() { _, _ = m.Submit(t.Context(), start, tasks) }()
		synctest.Wait()
		type claimed struct {
			queue.Claimed
			err error
		}
		here, elsewhere := make(chan claimed, 1), make(chan claimed, 1)
		for to, remote := range map[chan claimed]bool{here: false, elsewhere: true} {
			c := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute, Remote: remote}
			go func() {
				got, err := m.Claim(t.Context(), start, c)
				to <- claimed{got, err}
			}()
		}
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- m.Close() }()
		synctest.Wait()
		close(r.gate)
		if got := <-here; !errors.Is(got.err, queue.ErrClosed) || len(got.Tasks) != 0 {
			t.Errorf("the claim returns %d tasks, error %v; want ErrClosed", len(got.Tasks), got.err)
		}
		if got := <-elsewhere; got.err != nil || len(got.Tasks) != 1 {
			t.Errorf("the claim from elsewhere returns %d tasks, error %v; want one", len(got.Tasks), got.err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// A task that is retried has no progress until its next attempt reports some.
func TestC4_RetryResetsTheProgress(t *testing.T) {
	p := newProcess(t)
	task := newTask(&p.ids, queue.Spec{Options: queue.Options{MaxAttempts: 1}})
	submit(t, p.Machine, task)
	running := p.one(false)
	b := queue.Heartbeat{ID: task.ID, Token: running.Lease.Token, Lease: time.Minute}
	b.Progress = queue.Progress{Done: 3, Total: 4}
	if _, err := p.Heartbeat(t.Context(), start, queue.Worker{Name: "w"}, []queue.Heartbeat{b}); err != nil {
		t.Fatal(err)
	}
	if err := p.settle(running, queue.OutcomeFailure); err != nil {
		t.Fatal(err)
	}
	if got := p.task(task.ID).Progress; got.Done != 3 {
		t.Fatalf("the dead task has the progress %+v, want 3 of 4", got)
	}
	retryOf(t, p.Machine, task.ID)
	if got := p.task(task.ID).Progress; got != (queue.Progress{}) {
		t.Errorf("the retried task has the progress %+v, want none", got)
	}
}

// An edit may bring a task to 32 labels, and not beyond.
func TestC4_EditOfLabelsUpToTheirLimit(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	edit := func(from, to int) int {
		e := queue.Edit{Labels: make(map[string]string)}
		for i := from; i < to; i++ {
			e.Labels[fmt.Sprint(i)] = "v"
		}
		n, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderEdit, Edit: &e, All: true})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n, m := edit(0, 32), edit(32, 33); n != 1 || m != 0 {
		t.Errorf("the edits to 32 and to 33 labels change %d and %d tasks, want 1 and 0", n, m)
	}
	if got := len(p.task(id).Labels); got != 32 {
		t.Errorf("the task has %d labels, want 32", got)
	}
}
