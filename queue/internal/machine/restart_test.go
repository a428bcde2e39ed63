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

// process is a machine and what outlives it.
type process struct {
	*machine.Machine
	t      *testing.T
	rows   *rows
	starts *starts
	epoch  uint32
	ids    queue.IDs
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, rows: newRows(), starts: newStarts()}
	p.crash()
	return p
}

// crash ends the machine, and opens another one on what it has left.
func (p *process) crash() {
	p.t.Helper()
	p.rows, p.starts = p.rows.crash(), p.starts.crash()
	p.epoch++
	m, err := machine.Open(p.rows, machine.Config{Epoch: p.epoch, Starts: p.starts})
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

// cannotClaim checks that a claim gives an error, and nothing else.
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

// A claim of which only a part can be noted gives that part; one of which nothing
// can has started nothing.
func TestC6_NoRoomForStarts(t *testing.T) {
	p := newProcess(t)
	ids := p.submit(3)
	p.starts.left = 2
	tasks, err := p.claim(3, false)
	if err != nil || len(tasks) != 2 {
		t.Errorf("with room for 2, the claim gives %d, %v", len(tasks), err)
	}
	p.cannotClaim(errDisk)
	if got := p.task(ids[2]); got.State != queue.Waiting || len(got.Steps) != 1 {
		t.Errorf("a task that cannot start is %s, with the steps %v", got.State, got.Steps)
	}
}

// A start is recorded when its task is durable, and before the claim is answered: a
// start without a task could not be ended.
func TestC6_StartIsNotedInTime(t *testing.T) {
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
	if left := p.starts.crash(); left.noted[1].Token != 0 {
		t.Error("the start is noted of a task that a crash would undo")
	}
	close(p.rows.gate)
	if err := errors.Join(<-submitted, <-claimed); err != nil {
		t.Fatal(err)
	}
	p.crash()
	if got := p.task(task.ID); got.State != queue.Running {
		t.Errorf("after a crash the task is %s", got.State)
	}
}

// The place of a start is given to another only when it is durable that the lease
// is over.
func TestC6_PlaceIsKeptUntilTheEndIsDurable(t *testing.T) {
	p := newProcess(t)
	p.submit(1)
	task := p.one(false)
	p.rows.gate = make(chan struct{})
	answered := make(chan error)
	go func() { answered <- p.settle(task, queue.OutcomeSuccess) }()
	for p.task(task.ID).State == queue.Running {
	}
	if n := p.starts.reserved(); n != 1 {
		t.Errorf("%d places are taken while the end of the task is not durable", n)
	}
	close(p.rows.gate)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if n := p.starts.reserved(); n != 0 {
		t.Errorf("%d places are taken after the end of the task", n)
	}
}

// What is noted of leases that are over, or of what is no task of this store, starts
// nothing, and takes no place.
func TestC6_StaleStarts(t *testing.T) {
	p := newProcess(t)
	ids := p.submit(5)
	tasks, err := p.claim(5, true)
	if err != nil || len(tasks) != 5 {
		t.Fatal(len(tasks), err)
	}
	stale := p.starts.crash()
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
	submit(t, p.Machine, queue.NewTask{ID: ids[4], Spec: queue.Spec{Kind: "kind"}}) // another task of the same ID
	waiting := p.task(ids[3])
	stale.noted = append(stale.noted,
		machine.Start{ID: p.ids.New(start), Seq: 1, Token: 1, At: start, Worker: "w", Remote: time.Minute},
		fromLater(stale, ids[3]))
	before := p.rows.crash()
	p.starts = stale
	p.crash()
	for i, want := range []queue.State{queue.Succeeded, queue.Waiting, queue.Waiting, queue.Waiting, queue.Waiting} {
		if got := p.task(ids[i]); got.State != want || got.Crashes != 0 {
			t.Errorf("task %d is %s and counts %d crashes, want %s", i, got.State, got.Crashes, want)
		}
	}
	if got := p.task(ids[3]); len(got.Steps) != len(waiting.Steps) {
		t.Errorf("the task has the steps %v, and had %v", got.Steps, waiting.Steps)
	}
	if n := p.starts.reserved(); n != 0 {
		t.Errorf("nothing runs, and %d places are taken", n)
	}
	if !maps.EqualFunc(before.all, p.rows.crash().all, slices.Equal) {
		t.Error("opening it has changed rows")
	}
}

// fromLater is a start of a task by a machine that knew more than the rows, which are
// those of an older copy.
func fromLater(s *starts, id queue.ID) machine.Start {
	i := slices.IndexFunc(s.noted, func(s machine.Start) bool { return s.ID == id })
	later := s.noted[i]
	later.Token += 1 << 50
	return later
}

// A retried task is not taken for one that runs because an old start is noted.
func TestC6_StaleStartOfARetriedTask(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	task := p.one(true)
	stale := p.starts.crash()
	if err := p.settle(task, queue.OutcomeSnooze); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderCancel, All: true}); err != nil {
		t.Fatal(err)
	}
	retryOf(t, p.Machine, id)
	p.starts = stale
	p.crash()
	if got := p.task(id); got.State != queue.Waiting || got.Crashes != 0 {
		t.Errorf("it is %s, and counts %d crashes", got.State, got.Crashes)
	}
}

// A crash while a store is opened after a crash counts one of them.
func TestC9_CrashesOfOpeningAreNotCounted(t *testing.T) {
	p := newProcess(t)
	id := p.submit(1)[0]
	p.one(false)
	left := p.starts.crash()
	for range 5 {
		p.starts = left
		p.crash()
		if got := p.task(id).Crashes; got != 1 {
			t.Fatalf("after one crash of a process in which it ran, the task counts %d", got)
		}
	}
}
