package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// A dead task that retention keeps only because an unfinished task may read its result is
// forgotten when another task waits for its success: that task would wait for ever.
func TestC12_DeadTaskIsNotKeptForASuccess(t *testing.T) {
	p := newProcess(t)
	age := queue.Settings{KeepDead: queue.Retention{Age: time.Hour}}
	if err := p.Configure(t.Context(), start, "", queue.Change{Set: age}); err != nil {
		t.Fatal(err)
	}
	dead := newTask(&p.ids, queue.Spec{Options: queue.Options{MaxAttempts: 1}})
	submit(t, p.Machine, dead)
	if err := p.settle(p.one(false), queue.OutcomeFailure); err != nil {
		t.Fatal(err)
	}
	reader := newTask(&p.ids, queue.Spec{Options: queue.Options{AfterAny: []queue.ID{dead.ID}}})
	submit(t, p.Machine, reader)
	later := start.Add(2 * time.Hour)
	if _, err := p.Maintain(t.Context(), later, 0); err != nil {
		t.Fatal(err)
	}
	if got := p.task(dead.ID).State; got != queue.Dead {
		t.Fatalf("the task is %s while another one may read its result, want dead", got)
	}
	waiter := newTask(&p.ids, queue.Spec{Options: queue.Options{After: []queue.ID{dead.ID}}})
	if _, err := p.Submit(t.Context(), later, []queue.NewTask{waiter}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Maintain(t.Context(), later, 0); err != nil {
		t.Fatal(err)
	}
	if got := p.task(waiter.ID).State; got != queue.Cancelled {
		t.Errorf("a task that waits for the success of a dead one is %s, want cancelled", got)
	}
}

// A task may name a predecessor twice: it waits for it once, and retention forgets all tasks
// afterwards.
func TestC12_PredecessorNamedTwice(t *testing.T) {
	p := newProcess(t)
	first := newTask(&p.ids, queue.Spec{})
	twice := []queue.ID{first.ID, first.ID}
	second := newTask(&p.ids, queue.Spec{Options: queue.Options{After: twice, AfterAny: twice}})
	submit(t, p.Machine, first, second)
	before := p.task(second.ID)
	if before.State != queue.Held || len(before.Holds) != 1 {
		t.Fatalf("the second task is %s with the holds %+v, want held with one", before.State, before.Holds)
	}
	for range 2 {
		if err := p.settle(p.one(false), queue.OutcomeSuccess); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.task(second.ID).State; got != queue.Succeeded {
		t.Fatalf("the second task is %s, want succeeded", got)
	}
	if _, err := p.Maintain(t.Context(), start.Add(25*time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(t.Context(), queue.Filter{}, queue.Page{}); err != nil || len(found) > 0 {
		t.Errorf("after a day there are %d tasks, error %v, want none", len(found), err)
	}
}

// Submit leaves the tasks of its caller as they are, also one that comes after a duplicate of an
// existing task.
func TestC12_SubmitChangesNoTaskOfItsCaller(t *testing.T) {
	p := newProcess(t)
	unique := queue.Spec{Options: queue.Options{Unique: "name"}}
	existing, duplicate := newTask(&p.ids, unique), newTask(&p.ids, unique)
	submit(t, p.Machine, existing)
	next := newTask(&p.ids, queue.Spec{Options: queue.Options{After: []queue.ID{duplicate.ID}}})
	tasks := []queue.NewTask{duplicate, next}
	submit(t, p.Machine, tasks...)
	if got := tasks[1].After; !slices.Equal(got, []queue.ID{duplicate.ID}) {
		t.Errorf("the task comes after %v now, after %v before", got, duplicate.ID)
	}
	if got := p.task(next.ID).After; !slices.Equal(got, []queue.ID{existing.ID}) {
		t.Errorf("the submitted task comes after %v, want %v", got, existing.ID)
	}
}
