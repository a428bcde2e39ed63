package machine //nolint:testpackage // no answer shows which queues were looked at

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// A queue without Waiting tasks forgets its kinds, if there have been very many.
func TestC10_KindsOfNoUseAreForgotten(t *testing.T) {
	m, err := Open(inMap{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var ids queue.IDs
	kinds := func() int { return len(m.queues.byName[queue.DefaultQueue].kinds) }
	for round := range 3 {
		const n = 200
		for i := range n {
			kind := fmt.Sprintf("%d of round %d", i, round)
			task := queue.NewTask{ID: ids.New(start), Spec: queue.Spec{Kind: kind}}
			if _, err := m.Submit(t.Context(), start, []queue.NewTask{task}); err != nil {
				t.Fatal(err)
			}
			if i == n-1 {
				if _, err := m.Maintain(t.Context(), start, 0); err != nil || kinds() < n {
					t.Errorf("there are %d kinds, error %v; a task of the last one waits", kinds(), err)
				}
			}
			c, err := m.Claim(t.Context(), start, queue.Claim{Worker: "w", Kinds: []string{kind}, Max: 1, Lease: time.Minute})
			if err != nil || len(c.Tasks) != 1 || c.Tasks[0].Kind != kind {
				t.Fatalf("%+v is claimed, error %v, want a task of kind %s", c.Tasks, err, kind)
			}
		}
		if _, err := m.Maintain(t.Context(), start, 0); err != nil || kinds() > 0 {
			t.Errorf("there are %d kinds, error %v", kinds(), err)
		}
	}
}

// Maintain looks only at queues of which a task is due or has ended since the last call, and at
// a bounded number of queues to find unused ones, however many queues there are.
func TestC10_MaintainDoesNotVisitEveryQueue(t *testing.T) {
	const queues = 2 * maxSwept
	m, err := Open(inMap{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var ids queue.IDs
	for i := range queues {
		at := start.Add(time.Duration(i) * time.Second)
		task := queue.NewTask{ID: ids.New(at), Spec: queue.Spec{Kind: "k", Options: queue.Options{Queue: fmt.Sprint(i)}}}
		if _, err := m.Submit(t.Context(), at, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
		cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{task.ID}}}
		if _, err := m.Command(t.Context(), at, cancel); err != nil {
			t.Fatal(err)
		}
	}
	maintain := func(at, want time.Time) {
		t.Helper()
		if next, err := m.Maintain(t.Context(), at, 0); err != nil || !next.Equal(want) {
			t.Fatalf("Maintain is next due at %v, error %v, want %v", next, err, want)
		}
	}
	maintain(start.Add(time.Hour), start.Add(keepAge))
	broken := taskList{first: 1 << 31, last: 1 << 31, n: 1} // of a task that does not exist: to look at it panics
	for _, q := range m.queues.byName {
		if q.name != "0" && q.name != "1" {
			q.finished[0] = broken
		}
	}
	maintain(start.Add(keepAge), start.Add(keepAge+time.Second))
	unused := 0
	m.queues.forgetting = heap[*queueState]{index: indexForgetting}
	for _, q := range m.queues.byName {
		q.states, q.idle, q.forgets = [len(q.states)]int{}, 0, 0
	}
	maintain(start.Add(keepAge), time.Time{})
	for _, q := range m.queues.byName {
		if q.idle > 0 {
			unused++
		}
	}
	if unused < maxSwept-1 || unused > maxSwept {
		t.Errorf("Maintain has looked at %d queues, want %d", unused, maxSwept)
	}
}

// Maintain releases no more unique names of forgotten tasks than its limit allows.
func TestC7_MaintainReleasesUniqueNamesUpToItsLimit(t *testing.T) {
	const names, limit = 5, 2
	m, err := Open(inMap{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var ids queue.IDs
	for i := range names {
		o := queue.Options{Unique: fmt.Sprint(i), UniqueFor: 2 * keepAge}
		task := queue.NewTask{ID: ids.New(start), Spec: queue.Spec{Kind: "k", Options: o}}
		if _, err := m.Submit(t.Context(), start, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
		cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{task.ID}}}
		if _, err := m.Command(t.Context(), start, cancel); err != nil {
			t.Fatal(err)
		}
	}
	_, err = m.Maintain(t.Context(), start.Add(keepAge), 0)
	if n := len(m.uniqueNames.byName); err != nil || n != names {
		t.Fatalf("%d names are reserved when their tasks are forgotten, error %v, want %d", n, err, names)
	}
	for left := names - limit; left > -limit; left -= limit {
		_, err := m.Maintain(t.Context(), start.Add(2*keepAge), limit)
		if n := len(m.uniqueNames.byName); err != nil || n != max(left, 0) {
			t.Errorf("%d names are reserved, error %v, want %d", n, err, max(left, 0))
		}
	}
}
