package filestore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// The benchmarks below have one caller submit single tasks while something that
// concerns very many tasks happens, and report how long the longest of those calls
// took. BenchmarkWaitAlone is the same without company: what the disk takes.

func BenchmarkWaitAlone(b *testing.B) {
	const calls = 10_000
	s := newWaits(b)
	s.measure(b, func() {}, func() bool { return len(s.all) >= calls })
}

// BenchmarkWaitBesideRelease: the task that all others come after succeeds.
func BenchmarkWaitBesideRelease(b *testing.B) {
	for _, n := range []int{100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newWaits(b)
			first := s.task("first", queue.Spec{})
			s.submit(b, first)
			last := s.dependents(b, n, queue.Spec{Options: queue.Options{After: []queue.ID{first.ID}}})
			s.measure(b, func() { s.finish(b, queue.OutcomeSuccess) }, func() bool { return s.state(b, last) == queue.Waiting })
		})
	}
}

// BenchmarkWaitBesidePurge: the task that all others come after is dead, and purged.
func BenchmarkWaitBesidePurge(b *testing.B) {
	for _, n := range []int{100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newWaits(b)
			first := s.task("first", queue.Spec{})
			s.submit(b, first)
			last := s.dependents(b, n, queue.Spec{Options: queue.Options{After: []queue.ID{first.ID}}})
			s.finish(b, queue.OutcomeFailure)
			s.measure(b, func() {
				c := queue.Command{Do: queue.OrderForget, Filter: queue.Filter{IDs: []queue.ID{first.ID}}}
				if _, err := s.store.Command(b.Context(), time.Now(), c); err != nil {
					b.Error(err)
				}
			}, func() bool { return s.state(b, last) == queue.Cancelled })
		})
	}
}

// BenchmarkWaitBesideBatch: the last task of a batch ends that all others wait for.
func BenchmarkWaitBesideBatch(b *testing.B) {
	for _, n := range []int{300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newWaits(b)
			batch := s.ids.New(time.Now())
			s.submit(b, s.task("first", queue.Spec{Options: queue.Options{Batch: batch}}))
			last := s.dependents(b, n, queue.Spec{Options: queue.Options{AfterBatch: batch}})
			s.measure(b, func() { s.finish(b, queue.OutcomeSuccess) }, func() bool { return s.state(b, last) == queue.Waiting })
		})
	}
}

// BenchmarkWaitBesideSubmit: others submit as many tasks as one call may have, four
// times.
func BenchmarkWaitBesideSubmit(b *testing.B) {
	const n = queue.MaxSubmit
	s := newWaits(b)
	s.measure(b, func() {
		for range 4 {
			tasks := make([]queue.NewTask, n)
			for i := range tasks {
				tasks[i] = s.task("many", queue.Spec{Payload: make([]byte, 100)})
			}
			s.submit(b, tasks...)
		}
	}, func() bool { return true })
}

// waits is a store and how long calls to it have waited.
type waits struct {
	store *filestore.Store
	ids   queue.IDs
	mine  queue.IDs
	all   []time.Duration
}

func newWaits(b *testing.B) *waits {
	b.Helper()
	store, err := filestore.Open(b.TempDir(), filestore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return &waits{store: store}
}

func (s *waits) task(kind string, spec queue.Spec) queue.NewTask {
	spec.Kind = kind
	return queue.NewTask{ID: s.ids.New(time.Now()), Spec: spec}
}

func (s *waits) submit(b *testing.B, tasks ...queue.NewTask) {
	b.Helper()
	if _, err := s.store.Submit(b.Context(), time.Now(), tasks); err != nil {
		b.Error(err)
	}
}

// dependents submits tasks, and returns the last one.
func (s *waits) dependents(b *testing.B, n int, spec queue.Spec) (last queue.ID) {
	b.Helper()
	for ; n > 0; n -= 1000 {
		tasks := make([]queue.NewTask, 1000)
		for i := range tasks {
			tasks[i] = s.task("many", spec)
		}
		s.submit(b, tasks...)
		last = tasks[len(tasks)-1].ID
	}
	return last
}

// finish ends the first task.
func (s *waits) finish(b *testing.B, on queue.OutcomeKind) {
	b.Helper()
	c := queue.Claim{Worker: "w", Kinds: []string{"first"}, Max: 1, Lease: time.Hour}
	got, err := s.store.Claim(b.Context(), time.Now(), c)
	if err != nil || len(got.Tasks) != 1 {
		b.Fatal(err, len(got.Tasks))
	}
	o := queue.Outcome{ID: got.Tasks[0].ID, Token: got.Tasks[0].Lease.Token, Kind: on, Permanent: true}
	if _, err := s.store.Settle(b.Context(), time.Now(), []queue.Outcome{o}); err != nil {
		b.Error(err)
	}
}

func (s *waits) state(b *testing.B, id queue.ID) queue.State {
	b.Helper()
	found, err := s.store.Find(b.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(found) != 1 {
		b.Fatal(err, len(found))
	}
	return found[0].State
}

// measure submits tasks one by one while something is done, and until it is over.
func (s *waits) measure(b *testing.B, do func(), over func() bool) {
	b.Helper()
	ended := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(ended)
		do()
	}()
	for done := false; !done; {
		select {
		case <-ended:
			done = over()
		default:
		}
		spec := queue.Spec{Kind: "mine", Options: queue.Options{Queue: "mine"}}
		task := queue.NewTask{ID: s.mine.New(time.Now()), Spec: spec}
		before := time.Now()
		if _, err := s.store.Submit(b.Context(), before, []queue.NewTask{task}); err != nil {
			b.Fatal(err)
		}
		s.all = append(s.all, time.Since(before))
	}
	b.StopTimer()
	slices.Sort(s.all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(s.all[len(s.all)-1]), "worst-ms")
	b.ReportMetric(ms(s.all[len(s.all)*99/100]), "p99-ms")
	b.ReportMetric(ms(s.all[len(s.all)/2]), "p50-ms")
}
