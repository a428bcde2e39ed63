package machine_test

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// countedRows count the reads of rows of tasks.
type countedRows struct {
	*rows
	gets, scans, scanned int
}

func (r *countedRows) Get(key string) ([]byte, error) {
	r.gets++
	return r.rows.Get(key)
}

func (r *countedRows) Scan(from, to string, down bool, fn func(string, []byte) bool) error {
	r.scans++
	return r.rows.Scan(from, to, down, func(key string, value []byte) bool {
		r.scanned++
		return fn(key, value)
	})
}

// reset resets the counts.
func (r *countedRows) reset() { r.gets, r.scans, r.scanned = 0, 0, 0 }

// openCounted returns a machine with a row cache of keep bytes, and the counts of its
// reads.
func openCounted(t *testing.T, of *rows, keep int) (*machine.Machine, *countedRows) {
	t.Helper()
	r := &countedRows{rows: of}
	m, err := machine.Open(r, machine.Config{Keep: keep, Epoch: 2})
	if err != nil {
		t.Fatal(err)
	}
	r.reset()
	return m, r
}

// numbered returns tasks whose payloads are their numbers.
func numbered(ids *queue.IDs, n int, s queue.Spec) []queue.NewTask {
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		s.Payload = binary.BigEndian.AppendUint32(nil, uint32(i))
		tasks[i] = newTask(ids, s)
	}
	return tasks
}

const keepAll = 1 << 20

// The rows of a long backlog are read in few scans, and each task gets its own row.
func TestC10_RowsArePrefetched(t *testing.T) {
	const n = 2000
	r, ids := newRows(), queue.IDs{}
	submit(t, open(t, r), numbered(&ids, n, queue.Spec{})...)
	m, counted := openCounted(t, r, keepAll)
	for i := range uint32(n) {
		got := claimAt(t, m, start, 1)
		if len(got) != 1 || binary.BigEndian.Uint32(got[0].Payload) != i {
			t.Fatalf("claim %d got %+v", i, got)
		}
	}
	if counted.gets+counted.scans > 30 {
		t.Errorf("%d tasks took %d reads and %d scans", n, counted.gets, counted.scans)
	}
	if counted.scanned > 2*n {
		t.Errorf("%d tasks took scans over %d rows", n, counted.scanned)
	}
}

// Rows that are prefetched but not needed soon are rare: here the keys take turns, so
// that consecutive tasks are far apart.
func TestC10_RowsFarApartAreReadAlone(t *testing.T) {
	const n, keys = 2000, 40
	r, ids := newRows(), queue.IDs{}
	m := open(t, r)
	for k := range keys {
		submit(t, m, numbered(&ids, n/keys, queue.Spec{Options: queue.Options{Key: strings.Repeat("k", k+1)}})...)
	}
	m, counted := openCounted(t, r, keepAll)
	for range n {
		if got := claimAt(t, m, start, 1); len(got) != 1 {
			t.Fatalf("a claim got %+v", got)
		}
	}
	if counted.scanned > n/2 {
		t.Errorf("%d tasks took scans over %d rows, and %d reads", n, counted.scanned, counted.gets)
	}
}

// A turn of a lower tier does not discard the rows of other tiers, and rows of tiers that
// have to wait are not read.
func TestC10_TiersArePrefetchedApart(t *testing.T) {
	const blocks, each = 40, 10
	r, ids := newRows(), queue.IDs{}
	m := open(t, r)
	tiers := []stint.Priority{stint.High, stint.Normal, stint.Low}
	for range blocks {
		for _, tier := range tiers {
			submit(t, m, numbered(&ids, each, queue.Spec{Options: queue.Options{Tier: tier}})...)
		}
	}
	m, counted := openCounted(t, r, keepAll)
	n := blocks * each * len(tiers)
	for range n {
		if got := claimAt(t, m, start, 1); len(got) != 1 {
			t.Fatalf("a claim got %+v", got)
		}
	}
	if counted.gets+counted.scans > 60 {
		t.Errorf("%d tasks of three tiers took %d reads and %d scans", n, counted.gets, counted.scans)
	}
}

// Rows of other queues, between the tasks of one queue, are not prefetched with them.
func TestC10_QueuesArePrefetchedApart(t *testing.T) {
	const n, others = 1000, 3
	r, ids := newRows(), queue.IDs{}
	m := open(t, r)
	for range n {
		submit(t, m, numbered(&ids, 1, queue.Spec{})...)
		submit(t, m, numbered(&ids, others, queue.Spec{Options: queue.Options{Queue: "other"}})...)
	}
	m, counted := openCounted(t, r, keepAll)
	for range n {
		if got := claimAt(t, m, start, 1); len(got) != 1 {
			t.Fatalf("a claim got %+v", got)
		}
	}
	if counted.gets+counted.scans > 30 {
		t.Errorf("%d tasks of a queue took %d reads and %d scans", n, counted.gets, counted.scans)
	}
}

// The row cache keeps the rows of the tasks that start next, not those of the newest
// tasks.
func TestC10_NewTasksOfALongBacklogAreNotKept(t *testing.T) {
	const n = 2000
	r, ids := newRows(), queue.IDs{}
	submit(t, open(t, r), numbered(&ids, n, queue.Spec{})...)
	m, counted := openCounted(t, r, n*20) // larger rows
	submit(t, m, numbered(&ids, n, queue.Spec{})...)
	for range n {
		if got := claimAt(t, m, start, 1); len(got) != 1 {
			t.Fatalf("a claim got %+v", got)
		}
	}
	if counted.gets+counted.scans > n/10 {
		t.Errorf("%d tasks took %d reads and %d scans", n, counted.gets, counted.scans)
	}
}

// A row with a change that is not written yet is not replaced by an older row that is
// prefetched.
func TestC10_RowsThatAreBeingWrittenAreNotPrefetched(t *testing.T) {
	const n = 8
	r, ids := newRows(), queue.IDs{}
	tasks := numbered(&ids, n, queue.Spec{})
	submit(t, open(t, r), tasks...)
	m, _ := openCounted(t, r, keepAll)
	claimAt(t, m, start, 1) // from the next one on, other rows are read as well
	r.gate = make(chan struct{}, 10)
	commanded := make(chan error)
	go func() {
		_, err := m.Command(t.Context(), start, queue.Command{
			Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{tasks[2].ID}},
		})
		if err == nil {
			_, err = m.Command(t.Context(), start, queue.Command{
				Do: queue.OrderRetry, Filter: queue.Filter{IDs: []queue.ID{tasks[2].ID}},
			})
		}
		commanded <- err
	}()
	r.gate <- struct{}{} // the first command; the second one waits for its rows
	for waiting := false; !waiting; {
		found, err := m.Find(t.Context(), queue.Filter{IDs: []queue.ID{tasks[2].ID}}, queue.Page{})
		if err != nil {
			t.Fatal(err)
		}
		waiting = len(found[0].Steps) == 3
	}
	if got := claimAt(t, m, start, 1); got[0].ID != tasks[1].ID {
		t.Fatalf("task %s was claimed, want %s", got[0].ID, tasks[1].ID)
	}
	r.gate <- struct{}{}
	if err := <-commanded; err != nil {
		t.Fatal(err)
	}
	close(r.gate)
	got := claimAt(t, m, start, 1)
	if len(got) != 1 || got[0].ID != tasks[2].ID || len(got[0].Steps) != 4 {
		t.Errorf("got %+v, want task %s with submit, cancel, retry and claim", got, tasks[2].ID)
	}
}

// A machine that prefetches rows returns the same results as one that does not.
func TestRandom_PrefetchChangesNothing(t *testing.T) {
	rnd := seeded.Rand(t)
	plain, _ := openCounted(t, newRows(), 0)
	var (
		ids  queue.IDs
		all  []queue.ID
		runs []queue.Task
		with = newRows()
		now  = start
	)
	ahead, counted := openCounted(t, with, 10_000)
	same := func(do func(*machine.Machine) (any, error)) any {
		t.Helper()
		want, err := do(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := do(ahead)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, error %v, want %+v", got, err, want)
		}
		return got
	}
	tiers := []stint.Priority{stint.Normal, stint.High}
	for range 3000 {
		now = now.Add(time.Second)
		switch rnd.IntN(10) {
		case 0, 1:
			n, o := rnd.IntN(60), queue.Options{Tier: tiers[rnd.IntN(2)], Key: "kk"[:rnd.IntN(3)]}
			tasks := numbered(&ids, n, queue.Spec{Options: o})
			for _, task := range tasks {
				all = append(all, task.ID)
			}
			same(func(m *machine.Machine) (any, error) { return m.Submit(t.Context(), now, tasks) })
		case 2, 3, 4, 5:
			c := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 1 + rnd.IntN(9), Lease: time.Hour}
			got := same(func(m *machine.Machine) (any, error) { return m.Claim(t.Context(), now, c) })
			runs = append(runs, got.(queue.Claimed).Tasks...)
		case 6, 7:
			for range min(len(runs), 6) {
				i := rnd.IntN(len(runs))
				on := []queue.OutcomeKind{queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeRelease}[rnd.IntN(3)]
				o := []queue.Outcome{{ID: runs[i].ID, Token: runs[i].Lease.Token, Kind: on, RunAt: now}}
				same(func(m *machine.Machine) (any, error) { return m.Settle(t.Context(), now, o) })
				runs = append(runs[:i], runs[i+1:]...)
			}
		default:
			if len(all) == 0 {
				continue
			}
			do := []queue.Order{queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry}[rnd.IntN(4)]
			c := queue.Command{Do: do, Filter: queue.Filter{IDs: []queue.ID{all[rnd.IntN(len(all))]}}}
			same(func(m *machine.Machine) (any, error) { return m.Command(t.Context(), now, c) })
		}
	}
	t.Logf("%d tasks, %d reads, %d scans", len(all), counted.gets, counted.scans)
	if counted.scans == 0 {
		t.Error("nothing was prefetched")
	}
}
