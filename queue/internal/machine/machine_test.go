package machine_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// rows are rows in a map that can be made to block or to fail.
type rows struct {
	mu      sync.Mutex
	all     map[string][]byte
	batches int
	gate    chan struct{} // each Apply receives from it, unless it is nil
	err     error
	left    int // the number of batches until one fails, and all after it; 0: none fails
}

// errBroken is the error of batches that are made to fail.
var errBroken = errors.New("the rows are broken")

// breakAt makes the n-th batch fail, and all after it; 0: none. Every other such failure
// happens before any watcher has received an event of the batch.
func (r *rows) breakAt(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = n
}

func newRows() *rows { return &rows{all: map[string][]byte{}} }

func (r *rows) Apply(batch []machine.Change) error {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	if r.err != nil {
		return r.err
	}
	if r.left == 1 && r.batches%2 == 0 {
		return errBroken
	}
	for _, c := range batch {
		if c.Value == nil {
			delete(r.all, c.Key)
		} else {
			r.all[c.Key] = c.Value
		}
	}
	if r.left == 1 {
		return errBroken
	}
	r.left = max(r.left-1, 0)
	return nil
}

func (r *rows) Get(key string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[key], nil
}

func (r *rows) Scan(from, to string, _ bool, fn func(string, []byte) bool) error {
	now := r.crash().all // a batch may be applied concurrently
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if key >= from && key < to && !fn(key, now[key]) {
			break
		}
	}
	return nil
}

func (r *rows) Close() error { return nil }

// crash returns the rows that are durable now.
func (r *rows) crash() *rows {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &rows{all: maps.Clone(r.all)}
}

func open(t *testing.T, r *rows) *machine.Machine {
	t.Helper()
	return openOn(t, r)
}

func openOn(t *testing.T, r machine.Rows) *machine.Machine {
	t.Helper()
	m, err := machine.Open(r, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newTask(ids *queue.IDs, s queue.Spec) queue.NewTask {
	if s.Kind == "" {
		s.Kind = "kind"
	}
	return queue.NewTask{ID: ids.New(start), Spec: s}
}

func submit(t *testing.T, m *machine.Machine, tasks ...queue.NewTask) {
	t.Helper()
	for part := range slices.Chunk(tasks, queue.MaxSubmit) {
		if _, err := m.Submit(t.Context(), start, part); err != nil {
			t.Fatal(err)
		}
	}
}

func claim(t *testing.T, m *machine.Machine, n int) []queue.Task {
	t.Helper()
	c, err := m.Claim(t.Context(), start, queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: n, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c.Tasks
}

// A submit is answered when its rows are durable. Submits that wait meanwhile share the
// next batch.
func TestC6_SubmitReturnsWhenItIsDurable(t *testing.T) {
	r := newRows()
	m := open(t, r)
	r.gate = make(chan struct{})
	var (
		ids  queue.IDs
		done atomic.Int32
		all  sync.WaitGroup
	)
	const tasks = 10
	for range tasks {
		task := newTask(&ids, queue.Spec{})
		all.Go(func() {
			if _, err := m.Submit(context.Background(), start, []queue.NewTask{task}); err != nil {
				t.Error(err)
			}
			done.Add(1)
		})
	}
	for decided := 0; decided < tasks; { // all calls but the first wait for the batch of the first
		found, err := m.Find(t.Context(), queue.Filter{}, queue.Page{})
		if err != nil {
			t.Fatal(err)
		}
		decided = len(found)
		runtime.Gosched()
	}
	if n, durable := done.Load(), len(r.crash().all); n != 0 || durable != 0 {
		t.Errorf("%d are answered and %d rows written before the first batch is", n, durable)
	}
	close(r.gate)
	all.Wait()
	if n := len(r.crash().all); n != tasks {
		t.Errorf("%d rows, want %d", n, tasks)
	}
	if r.batches > 2 {
		t.Errorf("%d batches; all but the first submit could share one", r.batches)
	}
}

var errDisk = errors.New("the disk is on fire")

func TestC6_NothingIsAcceptedAfterAFailedWrite(t *testing.T) {
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	submit(t, m, newTask(&ids, queue.Spec{}))
	r.err = errDisk
	for range 2 {
		_, err := m.Submit(t.Context(), start, []queue.NewTask{newTask(&ids, queue.Spec{})})
		if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, errDisk) {
			t.Fatalf("error %v, want one that says why", err)
		}
	}
	if _, err := m.Find(t.Context(), queue.Filter{}, queue.Page{}); err != nil {
		t.Errorf("what is there cannot be read: %v", err)
	}
	r.err = nil
	if n := len(claim(t, open(t, r.crash()), 10)); n != 1 {
		t.Errorf("%d tasks are there after opening it again, want 1", n)
	}
}

// After a crash the store has all answered changes, and continues with them.
func TestC6_ReopenGoesOn(t *testing.T) {
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	a := newTask(&ids, queue.Spec{Options: queue.Options{Unique: "a", Group: "g"}})
	b := newTask(&ids, queue.Spec{Options: queue.Options{After: []queue.ID{a.ID}}})
	c := newTask(&ids, queue.Spec{Options: queue.Options{Group: "g"}})
	later := newTask(&ids, queue.Spec{Options: queue.Options{RunAt: start.Add(time.Hour)}})
	batch := ids.New(start)
	of := newTask(&ids, queue.Spec{Options: queue.Options{Batch: batch}})
	end := newTask(&ids, queue.Spec{Options: queue.Options{AfterBatch: batch}})
	submit(t, m, a, b, c, later, of, end)
	running := claim(t, m, 1)
	if len(running) != 1 || running[0].ID != a.ID {
		t.Fatalf("claimed %v, want the first", running)
	}

	r = r.crash()
	m = open(t, r)
	again := newTask(&ids, queue.Spec{Options: queue.Options{Unique: "a"}})
	receipts, err := m.Submit(t.Context(), start, []queue.NewTask{again})
	if err != nil || receipts[0] != (queue.Receipt{ID: a.ID, Existing: true}) {
		t.Errorf("receipt %v, error %v; want the first task's", receipts, err)
	}
	want := map[queue.ID]queue.State{
		a.ID: queue.Waiting, b.ID: queue.Held, c.ID: queue.Held,
		later.ID: queue.Scheduled, of.ID: queue.Waiting, end.ID: queue.Held,
	}
	wantStates(t, m, want)
	for _, task := range claim(t, m, 10) {
		answers, err := m.Settle(t.Context(), start, []queue.Outcome{
			{ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeSuccess},
		})
		if err != nil || answers[0] != nil {
			t.Fatal(err, answers)
		}
	}
	want[a.ID], want[of.ID] = queue.Succeeded, queue.Succeeded
	want[b.ID], want[c.ID], want[end.ID] = queue.Waiting, queue.Waiting, queue.Waiting
	wantStates(t, m, want)
	wantStates(t, open(t, r.crash()), want)
}

func wantStates(t *testing.T, m *machine.Machine, want map[queue.ID]queue.State) {
	t.Helper()
	tasks, err := m.Find(t.Context(), queue.Filter{}, queue.Page{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[queue.ID]queue.State{}
	for i := range tasks {
		got[tasks[i].ID] = tasks[i].State
	}
	if !maps.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
}

// A tier over its cap gets the turns of the guard though no other task starts: each task
// that ends counts as a turn.
func TestC1_GuardLetsATierPastItsCap(t *testing.T) {
	m := open(t, newRows())
	settings := queue.Settings{Max: 100, Caps: stint.Caps{Lowest: 1, Normal: 100}}
	if err := m.Configure(t.Context(), start, "default", queue.Change{Set: settings}); err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	const many = 60
	for range many {
		submit(t, m, newTask(&ids, queue.Spec{}))
	}
	running := claim(t, m, many)
	submit(t, m, newTask(&ids, queue.Spec{Options: queue.Options{Tier: stint.Lowest}}))
	for finishes := range many - 2 {
		if started := claim(t, m, 1); len(started) > 0 {
			if finishes == 0 {
				t.Error("started above its cap at once")
			}
			return
		}
		ended := running[finishes]
		if _, err := m.Settle(t.Context(), start, []queue.Outcome{
			{ID: ended.ID, Token: ended.Lease.Token, Kind: queue.OutcomeSuccess},
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the guard never let it in")
}

// Times beyond the range of a counter of nanoseconds stay in the far future.
func TestC8_TimesFarAway(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	far := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
	later := newTask(&ids, queue.Spec{Options: queue.Options{RunAt: far}})
	soon := newTask(&ids, queue.Spec{Options: queue.Options{Deadline: far}})
	submit(t, m, later, soon)
	if _, err := m.Maintain(t.Context(), start, 0); err != nil {
		t.Fatal(err)
	}
	c, err := m.Claim(t.Context(), start, queue.Claim{
		Worker: "w", Kinds: []string{"kind"}, Max: 2, Lease: math.MaxInt64,
	})
	if err != nil || len(c.Tasks) != 1 || c.Tasks[0].ID != soon.ID {
		t.Fatalf("claimed %v, error %v", c.Tasks, err)
	}
	if until := c.Tasks[0].Lease.Until; until.Before(start) {
		t.Errorf("the longest lease ends in %s", until)
	}
	wantStates(t, m, map[queue.ID]queue.State{later.ID: queue.Scheduled, soon.ID: queue.Running})
}

func TestC12_NegativeSettingsAreRefused(t *testing.T) {
	m := open(t, newRows())
	for _, s := range []queue.Settings{
		{Max: -1},
		{PerKey: -1},
		{Caps: stint.Caps{Low: -1}},
		{Rate: queue.Rate{PerSecond: -1}},
		{Keep: queue.Retention{Age: -1}},
	} {
		if err := m.Configure(t.Context(), start, "q", queue.Change{Set: s}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: error %v", s, err)
		}
	}
}

// A retention that is too long is refused with the longest one.
func TestC12_LongestRetention(t *testing.T) {
	m := open(t, newRows())
	keep := func(age time.Duration) error {
		return m.Configure(t.Context(), start, "q", queue.Change{Set: queue.Settings{KeepDead: queue.Retention{Age: age}}})
	}
	if err := keep(1e18); err != nil {
		t.Error(err)
	}
	want := "keep_dead.age is 2562047h47m16.854775807s; it must be from 0 to 277777h46m40s"
	if err := keep(math.MaxInt64); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// The caller may change its tasks after Submit has returned.
func TestC7_UniqueIsNotInTheCallersMemory(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	tasks := []queue.NewTask{newTask(&ids, queue.Spec{Options: queue.Options{Unique: "u"}})}
	first := tasks[0].ID
	submit(t, m, tasks...)
	tasks[0].ID = ids.New(start)
	receipts, err := m.Submit(t.Context(), start, tasks)
	if err != nil || receipts[0] != (queue.Receipt{ID: first, Existing: true}) {
		t.Errorf("receipt %v, error %v; want the first task's", receipts, err)
	}
}

// Two concurrent submits of the same prepared tasks are allowed: the second one returns
// the receipts of the first. Submit only reads the tasks.
func TestC6_SameTasksAtOnce(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	tasks := []queue.NewTask{newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{})}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if _, err := m.Submit(t.Context(), start, tasks); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
