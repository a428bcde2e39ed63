package machine_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// process is a machine, and the rows and the lease log that outlive it.
type process struct {
	*machine.Machine
	t      *testing.T
	rows   *rows
	leases *leaseList
	epoch  uint32
	ids    queue.IDs
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, rows: newRows(), leases: newLeaseList()}
	p.crash()
	return p
}

// crash ends the machine, and opens another one on its rows and its lease log.
func (p *process) crash() {
	p.t.Helper()
	p.rows, p.leases = p.rows.crash(), p.leases.crash()
	p.epoch++
	m, err := machine.Open(p.rows, machine.Config{Epoch: p.epoch, Leases: p.leases})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Machine = m
}

func (p *process) submit(n int) (ids []queue.ID) {
	p.t.Helper()
	for range n {
		task := newTask(&p.ids, queue.Spec{})
		submit(p.t, p.Machine, task)
		ids = append(ids, task.ID)
	}
	return ids
}

func (p *process) claim(n int, remote bool) ([]queue.Task, error) {
	c, err := p.Claim(p.t.Context(), start, queue.Claim{
		Worker: "w", Kinds: []string{"kind"}, Max: n, Lease: time.Minute, Remote: remote,
	})
	return c.Tasks, err
}

func (p *process) one(remote bool) queue.Task {
	p.t.Helper()
	tasks, err := p.claim(1, remote)
	if err != nil || len(tasks) != 1 {
		p.t.Fatalf("%d tasks are claimed, and the error is %v", len(tasks), err)
	}
	return tasks[0]
}

// cannotClaim checks that a claim returns an error and no tasks.
func (p *process) cannotClaim(want error) {
	p.t.Helper()
	tasks, err := p.claim(2, true)
	if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, want) || len(tasks) != 0 {
		p.t.Errorf("the claim gives %d tasks, %v", len(tasks), err)
	}
}

// settle ends a lease, and returns the answer.
func (p *process) settle(t queue.Task, on queue.OutcomeKind) error {
	p.t.Helper()
	answers, err := p.Settle(p.t.Context(), start, []queue.Outcome{{ID: t.ID, Token: t.Lease.Token, Kind: on}})
	if err != nil {
		p.t.Fatal(err)
	}
	return answers[0]
}

func (p *process) task(id queue.ID) queue.Task {
	p.t.Helper()
	found, err := p.Find(p.t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(found) != 1 {
		p.t.Fatalf("%d tasks have the ID %s, error %v", len(found), id, err)
	}
	return found[0]
}

// If there are slots for a part of a claim, the claim returns that part. Without a slot it
// starts nothing.
func TestC6_NoRoomForLeases(t *testing.T) {
	p := newProcess(t)
	ids := p.submit(3)
	p.leases.left = 2
	tasks, err := p.claim(3, false)
	if err != nil || len(tasks) != 2 {
		t.Errorf("with 2 free slots the claim returns %d tasks, error %v; want 2", len(tasks), err)
	}
	p.cannotClaim(errDisk)
	if got := p.task(ids[2]); got.State != queue.Waiting || len(got.Steps) != 1 {
		t.Errorf("a task that cannot start is %s, with the steps %v", got.State, got.Steps)
	}
}

// A lease is recorded when its task is durable, and before the claim is answered: a lease
// without a task could not be ended.
func TestC6_LeaseIsRecordedInTime(t *testing.T) {
	p := newProcess(t)
	p.rows.gate = make(chan struct{})
	task, submitted, claimed := newTask(&p.ids, queue.Spec{}), make(chan error), make(chan error)
	go func() {
		_, err := p.Submit(t.Context(), start, []queue.NewTask{task})
		submitted <- err
	}()
	for there := 0; there == 0; {
		found, err := p.Find(t.Context(), queue.Filter{}, queue.Page{})
		if err != nil {
			t.Fatal(err)
		}
		there = len(found)
	}
	go func() {
		_, err := p.claim(1, true)
		claimed <- err
	}()
	for p.task(task.ID).State != queue.Running {
	}
	if left := p.leases.crash(); left.entries[1].Token != 0 {
		t.Error("the lease of a task that is not durable is recorded")
	}
	close(p.rows.gate)
	if err := errors.Join(<-submitted, <-claimed); err != nil {
		t.Fatal(err)
	}
	p.crash()
	if got := p.task(task.ID); got.State != queue.Running {
		t.Errorf("after a crash the task is %s, want running", got.State)
	}
}

// The slot of a lease is free when the end of the lease is durable, and not before.
func TestC6_SlotIsKeptUntilTheEndIsDurable(t *testing.T) {
	p := newProcess(t)
	p.submit(1)
	task := p.one(false)
	p.rows.gate = make(chan struct{})
	answered := make(chan error)
	go func() { answered <- p.settle(task, queue.OutcomeSuccess) }()
	for p.task(task.ID).State == queue.Running {
	}
	if n := p.leases.reserved(); n != 1 {
		t.Errorf("%d slots are reserved while the end of the task is not durable, want 1", n)
	}
	close(p.rows.gate)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if n := p.leases.reserved(); n != 0 {
		t.Errorf("%d slots are reserved after the end of the task, want 0", n)
	}
}

// Entries of leases that have ended, and of tasks that the store does not have, start
// nothing and keep no slot.
func TestC6_StaleLeaseEntries(t *testing.T) {
	p := newProcess(t)
	ids := p.submit(5)
	tasks, err := p.claim(5, true)
	if err != nil || len(tasks) != 5 {
		t.Fatal(len(tasks), err)
	}
	stale := p.leases.crash()
	for i, on := range []queue.OutcomeKind{
		queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease,
	} {
		if err := p.settle(tasks[i], on); err != nil {
			t.Fatal(err)
		}
	}
	forget := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: ids[4:]}}
	for _, do := range []func() error{
		func() error { return p.settle(tasks[4], queue.OutcomeRelease) },
		func() error { _, err := p.Command(t.Context(), start, forget); return err },
		func() error {
			forget.Do = queue.OrderForget
			_, err := p.Command(t.Context(), start, forget)
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	submit(t, p.Machine, queue.NewTask{ID: ids[4], Spec: queue.Spec{Kind: "kind"}}) // another task with the same ID
	waiting := p.task(ids[3])
	stale.entries = append(stale.entries,
		machine.LeaseEntry{ID: p.ids.New(start), Seq: 1, Token: 1, At: start, Worker: "w", Remote: time.Minute},
		fromLater(stale, ids[3]))
	before := p.rows.crash()
	p.leases = stale
	p.crash()
	for i, want := range []queue.State{queue.Succeeded, queue.Waiting, queue.Waiting, queue.Waiting, queue.Waiting} {
		if got := p.task(ids[i]); got.State != want || got.Crashes != 0 {
			t.Errorf("task %d is %s and counts %d crashes, want %s", i, got.State, got.Crashes, want)
		}
	}
	if got := p.task(ids[3]); len(got.Steps) != len(waiting.Steps) {
		t.Errorf("the task has the steps %v, want %v as before", got.Steps, waiting.Steps)
	}
	if n := p.leases.reserved(); n != 0 {
		t.Errorf("nothing runs, but %d slots are reserved", n)
	}
	if !maps.EqualFunc(before.all, p.rows.crash().all, slices.Equal) {
		t.Error("opening the machine has changed rows")
	}
}

// fromLater returns a lease entry of a task whose token is newer than the rows, as when the
// rows are an older copy.
func fromLater(l *leaseList, id queue.ID) machine.LeaseEntry {
	i := slices.IndexFunc(l.entries, func(e machine.LeaseEntry) bool { return e.ID == id })
	later := l.entries[i]
	later.Token += 1 << 50
	return later
}

// An old entry of the lease log does not make a retried task Running.
func TestC6_StaleLeaseEntryOfARetriedTask(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	task := p.one(true)
	stale := p.leases.crash()
	if err := p.settle(task, queue.OutcomeSnooze); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderCancel, All: true}); err != nil {
		t.Fatal(err)
	}
	retryOf(t, p.Machine, id)
	p.leases = stale
	p.crash()
	if got := p.task(id); got.State != queue.Waiting || got.Crashes != 0 {
		t.Errorf("the task is %s with %d crashes, want waiting with none", got.State, got.Crashes)
	}
}

// A crash while a store is opened after a crash does not count as another crash of its
// tasks.
func TestC9_CrashesOfOpeningAreNotCounted(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	p.one(false)
	left := p.leases.crash()
	for range 5 {
		p.leases = left
		p.crash()
		if got := p.task(id).Crashes; got != 1 {
			t.Fatalf("after one crash of a process in which it ran, the task counts %d", got)
		}
	}
}
