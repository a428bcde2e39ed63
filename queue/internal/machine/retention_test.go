package machine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
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
			tasks := make([]queue.NewTask, n)
			for i := range tasks {
				tasks[i] = newTask(&ids, queue.Spec{})
			}
			if _, err := m.Submit(t.Context(), time.Now(), tasks); err != nil {
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
				t.Errorf("%d tasks are kept after %d ends, want at most %d", got, n, kept+most)
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
