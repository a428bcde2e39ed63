package filestore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// TestC6_CrashesDuringACascade cuts the power while very many tasks are cancelled,
// because a task before them was purged: if the purge is durable, the store that is
// opened on what is left cancels the rest, and starts none of them.
func TestC6_CrashesDuringACascade(t *testing.T) {
	const dependents, copies = 1000, 12
	mem := vfs.NewCrashableMem()
	var (
		mu       sync.Mutex
		left     []vfs.FS
		watching bool
	)
	fs := filestore.Intercept(mem, func(op, _ string, run func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if watching && op == "sync" && len(left) < copies {
			left = append(left, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return run()
	})
	s, err := filestore.OpenIn(fs, "store", filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first := purgeable(t, s, dependents)
	mu.Lock()
	watching = true
	mu.Unlock()
	c := queue.Command{Do: queue.OrderForget, Filter: queue.Filter{IDs: []queue.ID{first}}}
	if n, err := s.Command(t.Context(), time.Unix(1e9, 0), c); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	all := queue.Filter{Kind: "dependent"}
	until(t, s, func() bool { return states(t, s, all)[queue.Cancelled] == dependents })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	parts := 0
	for i, fs := range left {
		s, err := filestore.OpenIn(fs, "store", filestore.Config{})
		if err != nil {
			t.Fatalf("copy %d: %v", i, err)
		}
		want := queue.Cancelled
		if n := states(t, s, queue.Filter{IDs: []queue.ID{first}}); n[queue.Dead] == 1 {
			want = queue.Held
		} else {
			parts++
		}
		until(t, s, func() bool { return states(t, s, all)[want] == dependents })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if parts < copies/2 {
		t.Errorf("of %d crashes %d came after the purge was durable", len(left), parts)
	}
}

// purgeable returns a dead task that others come after.
func purgeable(t *testing.T, s *filestore.Store, dependents int) queue.ID {
	t.Helper()
	var ids queue.IDs
	now := time.Unix(1e9, 0)
	first := queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "first"}}
	tasks := []queue.NewTask{first}
	for range dependents {
		tasks = append(tasks, queue.NewTask{
			ID: ids.New(now), Spec: queue.Spec{Kind: "dependent", Options: queue.Options{After: []queue.ID{first.ID}}},
		})
	}
	if _, err := s.Submit(t.Context(), now, tasks); err != nil {
		t.Fatal(err)
	}
	c := queue.Claim{Worker: "w", Kinds: []string{"first"}, Max: 1, Lease: time.Minute}
	got, err := s.Claim(t.Context(), now, c)
	if err != nil || len(got.Tasks) != 1 {
		t.Fatal(err, len(got.Tasks))
	}
	o := queue.Outcome{ID: first.ID, Token: got.Tasks[0].Lease.Token, Kind: queue.OutcomeFailure, Permanent: true}
	if answers, err := s.Settle(t.Context(), now, []queue.Outcome{o}); err != nil || answers[0] != nil {
		t.Fatal(err, answers)
	}
	return first.ID
}

// states counts tasks by their states.
func states(t *testing.T, s *filestore.Store, f queue.Filter) map[queue.State]int {
	t.Helper()
	found, err := s.Find(t.Context(), f, queue.Page{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	states := make(map[queue.State]int)
	for i := range found {
		states[found[i].State]++
	}
	return states
}

// until returns when something is so that changes of tasks bring about.
func until(t *testing.T, s *filestore.Store, is func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("it never is"))
	defer stop()
	begun, changed, ended := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := s.Watch(ctx, func() { close(begun) }, func(queue.Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	defer func() { <-ended }()
	defer stop()
	<-begun
	for !is() {
		select {
		case <-changed:
		case <-ended:
			return
		}
	}
}
