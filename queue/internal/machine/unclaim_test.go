package machine_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// A claim whose leases cannot be recorded is undone, and leaves nothing behind: no step, no
// signal, no slot of the lease log, and no token of a rate that is spent.
func TestC6_UnrecordedClaimIsUndone(t *testing.T) {
	p := newProcess(t)
	one := queue.Rate{PerSecond: 1, Burst: 2}
	if err := p.Configure(t.Context(), start, "", queue.Change{Set: queue.Settings{Rate: one, KeyRate: one}}); err != nil {
		t.Fatal(err)
	}
	var ids []queue.ID
	for range 2 {
		task := newTask(&p.ids, queue.Spec{Options: queue.Options{Key: "k", Group: "g", Deadline: start.Add(time.Second)}})
		task.Group += task.ID.String()
		submit(t, p.Machine, task)
		ids = append(ids, task.ID)
	}
	ready, stop := p.Listen("")
	defer stop()
	p.leases.putErr = errDisk
	before, rows := []queue.Task{p.task(ids[0]), p.task(ids[1])}, maps.Clone(p.rows.all)
	for range 5 {
		p.cannotClaim(errDisk)
	}
	for i, id := range ids {
		if got := p.task(id); !reflect.DeepEqual(got, before[i]) {
			t.Errorf("the task is %+v after the claim, want %+v as before", got, before[i])
		}
	}
	select {
	case <-ready:
		t.Error("an undone claim signals workers to claim again")
	default:
	}
	if !maps.EqualFunc(rows, p.rows.all, slices.Equal) {
		t.Error("an undone claim has written rows")
	}
	p.leases.putErr = nil
	for range ids {
		if err := p.settle(p.one(false), queue.OutcomeSuccess); err != nil {
			t.Error(err)
		}
	}
	if n := p.leases.reserved(); n != 0 {
		t.Errorf("nothing runs, but %d slots are reserved", n)
	}
}

// A task whose claim is undone keeps the time since when it has waited.
func TestC6_UndoneClaimKeepsTheWait(t *testing.T) {
	p := newProcess(t)
	for i := range 3 {
		now := start.Add(time.Duration(i) * time.Second)
		if _, err := p.Submit(t.Context(), now, []queue.NewTask{newTask(&p.ids, queue.Spec{})}); err != nil {
			t.Fatal(err)
		}
	}
	p.leases.putErr = errDisk
	p.cannotClaim(errDisk)
	p.leases.putErr = nil
	for i := range 3 {
		s, err := p.Stats(t.Context(), start)
		got, want := s.Queues["default"].Oldest, start.Add(time.Duration(i)*time.Second)
		if err != nil || !got.Equal(want) {
			t.Errorf("when %d have started the oldest waits since %s, want %s; error %v", i, got, want, err)
		}
		p.one(false)
	}
}

// What a start that could not be recorded has spent of a rate is taken back only while no
// task has started after it: such a task may have started on what is gained by waiting.
func TestC12_RateOfAnUndoneClaim(t *testing.T) {
	one := queue.Rate{PerSecond: 1}
	for name, s := range map[string]queue.Settings{"rate": {Rate: one}, "rate of a key": {KeyRate: one}} {
		p := newProcess(t)
		if err := p.Configure(t.Context(), start, "", queue.Change{Set: s}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			submit(t, p.Machine, newTask(&p.ids, queue.Spec{Options: queue.Options{Key: "k"}}))
		}
		later := start.Add(2 * time.Second)
		p.leases.onPut = func() {
			if got := claimAt(t, p.Machine, later, 1); len(got) != 1 {
				t.Errorf("%s: %d start meanwhile, want 1", name, len(got))
			}
			p.leases.putErr = errDisk
		}
		p.cannotClaim(errDisk)
		p.leases.putErr = nil
		if got := claimAt(t, p.Machine, later, 1); len(got) != 0 {
			t.Errorf("%s: two start at once", name)
		}
		if got := claimAt(t, p.Machine, later.Add(time.Second), 1); len(got) != 1 {
			t.Errorf("%s: %d start after a second, want 1", name, len(got))
		}
	}
}

// A task whose start could not be recorded dies at its deadline, as if it had not been
// claimed.
func TestC6_UndoneClaimKeepsTheDeadline(t *testing.T) {
	p := newProcess(t)
	task := newTask(&p.ids, queue.Spec{Options: queue.Options{Deadline: start.Add(time.Second)}})
	submit(t, p.Machine, task)
	p.leases.putErr = errDisk
	p.cannotClaim(errDisk)
	if _, err := p.Maintain(t.Context(), start.Add(time.Second), 0); err != nil {
		t.Fatal(err)
	}
	if got := p.task(task.ID); got.State != queue.Dead || len(got.Steps) != 2 {
		t.Errorf("the task is %s, with the steps %v", got.State, got.Steps)
	}
}

// If a part of a claim is recorded, the tasks of that part have started: after a crash the
// lease log has them. A signal makes the worker claim the rest.
func TestC6_ClaimThatIsRecordedInPart(t *testing.T) {
	p := newProcess(t)
	ids := p.submit(3)
	ready, stop := p.Listen("")
	defer stop()
	p.leases.puts, p.leases.putErr = 1, errDisk
	tasks, err := p.claim(3, false)
	if err != nil || len(tasks) != 1 || tasks[0].ID != ids[0] {
		t.Fatalf("the claim returns %d tasks, error %v; want the first task", len(tasks), err)
	}
	select {
	case <-ready:
	default:
		t.Error("no signal after a claim that was recorded in part")
	}
	if n := p.leases.reserved(); n != 1 {
		t.Errorf("one task runs, but %d slots are reserved", n)
	}
	p.crash()
	for i, crashes := range []int{1, 0, 0} {
		if got := p.task(ids[i]); got.State != queue.Waiting || got.Crashes != crashes {
			t.Errorf("task %d is %s and counts %d crashes, want %d", i, got.State, got.Crashes, crashes)
		}
	}
}

// A suspect whose claim is undone does not run: it, or another one, may start.
func TestC9_SuspectWhoseClaimIsUndone(t *testing.T) {
	p := newProcess(t)
	for range 2 {
		submit(t, p.Machine, newTask(&p.ids, queue.Spec{Options: queue.Options{MaxCrashes: 2}}))
	}
	if tasks, err := p.claim(2, false); len(tasks) != 2 || err != nil {
		t.Fatalf("the claim returns %d tasks, error %v", len(tasks), err)
	}
	p.crash()
	p.leases.putErr = errDisk
	p.cannotClaim(errDisk)
	p.leases.putErr = nil
	for range 2 {
		tasks, err := p.claim(2, false)
		if err != nil || len(tasks) != 1 || tasks[0].Crashes != 1 {
			t.Fatalf("the claim returns %d tasks, error %v; want one suspect", len(tasks), err)
		}
		if err := p.settle(tasks[0], queue.OutcomeSuccess); err != nil {
			t.Fatal(err)
		}
	}
}

// If a task is ordered to pause before its claim is undone, the order takes effect.
func TestC4_OrderBeforeAClaimIsUndone(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	p.leases.onPut = func() {
		if n, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderPause, All: true}); n != 1 || err != nil {
			t.Errorf("the command changes %d tasks, error %v; want 1", n, err)
		}
		p.leases.putErr = errDisk
	}
	p.cannotClaim(errDisk)
	if got := p.task(id).State; got != queue.Paused {
		t.Errorf("the task is %s, want paused", got)
	}
}

// If an older task of a group is retried before the claim of a later one is undone, the
// older task starts first.
func TestC12_GroupWhoseClaimIsUndone(t *testing.T) {
	p := newProcess(t)
	spec := queue.Spec{Options: queue.Options{Group: "g", MaxAttempts: 1}}
	older, later := newTask(&p.ids, spec), newTask(&p.ids, spec)
	submit(t, p.Machine, older, later)
	if err := p.settle(p.one(false), queue.OutcomeFailure); err != nil {
		t.Fatal(err)
	}
	p.leases.onPut = func() {
		retryOf(t, p.Machine, older.ID)
		p.leases.putErr = errDisk
	}
	p.cannotClaim(errDisk)
	p.leases.putErr = nil
	if got := p.one(false); got.ID != older.ID {
		t.Errorf("the later task starts first, want the older one")
	}
}
