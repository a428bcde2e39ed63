package machine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Tasks are forgotten as quickly as tasks end, on a store that takes a millisecond for each
// batch and with hundreds of ends in a batch. If they were not, the rows and the memory of
// a busy queue would grow without a bound, whatever its retention is.
func TestC3_RetentionKeepsPaceWithEnds(t *testing.T) {
	const (
		tasks   = 50_000
		workers = 500
		kept    = 100
		most    = 20 * workers // that have ended and are not forgotten yet
	)
	synctest.Test(t, func(t *testing.T) {
		m := openOn(t, &slowRows{rows: newRows()})
		q := queue.New(m, queue.Config{Poll: 10 * time.Millisecond})
		settings := queue.Settings{Keep: queue.Retention{Count: kept}}
		if err := q.Configure(t.Context(), queue.DefaultQueue, settings); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{}, tasks+2*workers)
		kind := queue.Kind[any]("kind")
		kind.Handle(q, func(context.Context, *queue.Job[any]) error {
			ended <- struct{}{}
			return nil
		})
		var ids queue.IDs
		add := func(n int) {
			batch := make([]queue.NewTask, n)
			for i := range batch {
				batch[i] = newTask(&ids, queue.Spec{})
			}
			if _, err := m.Submit(t.Context(), time.Now(), batch); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- q.Run(ctx, stint.New(workers, stint.Config{})) }()
		add(2 * workers)
		for n := 0; n < tasks; n += workers {
			for range workers {
				<-ended
			}
			add(workers)
			s, err := m.Stats(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Queues[queue.DefaultQueue].States[queue.Succeeded]; got > kept+most {
				t.Errorf("%d tasks are kept after %d ends, want at most %d", got, n+workers, kept+most)
				break
			}
		}
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// valueRows keep the largest number of values in a batch.
type valueRows struct {
	*slowRows
	most int
}

func (r *valueRows) Apply(batch []machine.Change) error {
	values := 0
	for _, c := range batch {
		if c.Value != nil {
			values++
		}
	}
	r.most = max(r.most, values)
	return r.slowRows.Apply(batch)
}

// Maintain waits after each step that writes values, which may be large: here those of tasks
// that are cancelled because the one that they come after is forgotten without success.
func TestC3_ForgettingWaitsForWhatItCancels(t *testing.T) {
	const (
		tasks = 1000
		most  = 300 // values in a batch
	)
	synctest.Test(t, func(t *testing.T) {
		r := &valueRows{slowRows: &slowRows{rows: newRows()}}
		m := openOn(t, r)
		var ids queue.IDs
		submitAt := func(batch []queue.NewTask) {
			t.Helper()
			if _, err := m.Submit(t.Context(), time.Now(), batch); err != nil {
				t.Fatal(err)
			}
		}
		firsts, nexts := make([]queue.NewTask, tasks), make([]queue.NewTask, tasks)
		for i := range firsts {
			firsts[i] = newTask(&ids, queue.Spec{Options: queue.Options{Queue: "firsts"}})
			nexts[i] = newTask(&ids, queue.Spec{Options: queue.Options{After: []queue.ID{firsts[i].ID}}})
		}
		submitAt(firsts)
		submitAt(nexts)
		dead := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Queue: "firsts"}}
		if _, err := m.Command(t.Context(), time.Now(), dead); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.most = 0
		if _, err := m.Maintain(t.Context(), time.Now().Add(100*24*time.Hour), 0); err != nil {
			t.Fatal(err)
		}
		if r.most > most {
			t.Errorf("Maintain has written %d values in one batch, want at most %d", r.most, most)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Retention forgets the tasks of all queues in the order in which their time is over, so no queue
// holds up another one.
func TestC10_RetentionOfManyQueues(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	keep := queue.Settings{Keep: queue.Retention{Age: time.Hour}}
	if err := m.Configure(t.Context(), start, "", queue.Change{Set: keep}); err != nil {
		t.Fatal(err)
	}
	cancelled := func(name string, at time.Time) queue.ID {
		task := newTask(&ids, queue.Spec{Options: queue.Options{Queue: name}})
		if _, err := m.Submit(t.Context(), at, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
		c := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{task.ID}}}
		if _, err := m.Command(t.Context(), at, c); err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	forgets := func(at time.Time, limit int, want ...queue.ID) {
		t.Helper()
		if _, err := m.Maintain(t.Context(), at, limit); err != nil {
			t.Fatal(err)
		}
		var left []queue.ID
		all, err := m.Find(t.Context(), queue.Filter{}, queue.Page{})
		for i := range all {
			left = append(left, all[i].ID)
		}
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("the tasks %v are left, error %v, want %v", left, err, want)
		}
	}
	cancelled("b", start)
	cancelled("c", start.Add(time.Second))
	second := cancelled("b", start.Add(2*time.Second))
	last := cancelled("c", start.Add(3*time.Second))
	forgets(start.Add(2*time.Hour), 2, second, last)
	another := cancelled("a", start.Add(2*time.Hour))
	forgets(start.Add(4*time.Hour), 1, last, another)
	forgets(start.Add(4*time.Hour), 0)
}
