package machine_test

import (
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
