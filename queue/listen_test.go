package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// attended is a store that counts its listeners.
type attended struct {
	queue.Store
	listening atomic.Int32
}

func (a *attended) Listen(name string) (<-chan struct{}, func()) {
	a.listening.Add(1)
	ready, stop := a.Store.Listen(name)
	return ready, func() {
		stop()
		a.listening.Add(-1)
	}
}

// Queues with different handlers on one store hear each of their tasks at once:
// none waits for a poll because the signal went to the other.
func TestC1_QueuesShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		counting := &attended{Store: store}
		var rigs []*rig
		for i := range 3 {
			r := &rig{
				T: t, store: store, slots: stint.New(2, stint.Config{}), ended: make(chan error, 1),
				Queue: queue.New(counting, queue.Config{Poll: time.Hour}),
			}
			r.Handle(fmt.Sprint("kind ", i), func(context.Context, *queue.Attempt) error { return nil })
			r.start()
			rigs = append(rigs, r)
		}
		for n := range 100 {
			r := rigs[n%len(rigs)]
			r.is(rigs[0].submit(fmt.Sprint("kind ", n%len(rigs)), queue.Options{}), queue.Succeeded)
		}
		for _, r := range rigs {
			r.end()
		}
		if n := counting.listening.Load(); n != 0 {
			t.Errorf("nothing runs, and %d still listen", n)
		}
	})
}

// Runs of one Queue on schedulers of their own do not take the signals from each
// other: with one busy, or gone, the next task starts on the other.
func TestC1_RunsShareAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Poll: time.Hour})
		r.Handle("k", func(context.Context, *queue.Attempt) error {
			time.Sleep(time.Minute)
			return nil
		})
		r.start()
		other := &rig{T: t, Queue: r.Queue, store: r.store, slots: stint.New(1, stint.Config{}), ended: make(chan error, 1)}
		other.start()
		begun := time.Now()
		var ids []queue.ID
		for range 10 {
			first, second := r.submit("k", queue.Options{}), r.submit("k", queue.Options{})
			r.is(first, queue.Running)
			r.is(second, queue.Running)
			ids = append(ids, first, second)
			time.Sleep(time.Minute)
		}
		other.end()
		for range 10 {
			ids = append(ids, r.submit("k", queue.Options{}))
			r.is(ids[len(ids)-1], queue.Running)
			time.Sleep(time.Minute)
		}
		if took := time.Since(begun); took != 20*time.Minute || slices.ContainsFunc(ids, func(id queue.ID) bool {
			return r.is(id, queue.Succeeded).Failures != 0
		}) {
			t.Errorf("30 tasks of a minute on two schedulers, and then one, took %s", took)
		}
		r.end()
	})
}
