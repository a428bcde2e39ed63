package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// skewed is a store whose clock is not that of its callers, as one on another host.
type skewed struct {
	queue.Store
	ahead time.Duration
}

func (s *skewed) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return s.Store.Submit(ctx, now.Add(s.ahead), tasks)
}

func (s *skewed) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	return s.Store.Claim(ctx, now.Add(s.ahead), c)
}

func (s *skewed) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	return s.Store.Settle(ctx, now.Add(s.ahead), outcomes)
}

func (s *skewed) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return s.Store.Heartbeat(ctx, now.Add(s.ahead), w, heartbeats)
}

func (s *skewed) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	next, err := s.Store.Maintain(ctx, now.Add(s.ahead), limit)
	if !next.IsZero() {
		next = next.Add(-s.ahead)
	}
	return next, err
}

// However far the store's clock is from that of the process, hooks receive the last outcomes
// of the process, and Run does not wait for later events of others.
func TestC3_HooksAndClocksApart(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const tasks = 20
				var ended, dead int
				store := memstore.New(memstore.Config{})
				q := queue.New(&skewed{store, ahead}, queue.Config{
					Grace: time.Minute,
					OnEvent: func(ctx context.Context, e queue.Event) {
						if e.From == queue.Running && ctx.Err() == nil {
							ended++
						}
						time.Sleep(20 * time.Millisecond) // it lags behind
					},
					OnDead: func(ctx context.Context, _ queue.Task) {
						if dead++; ctx.Err() != nil {
							t.Error("OnDead is called after the end")
						}
					},
				})
				r := &rig{T: t, Queue: q, store: store, slots: stint.New(tasks, stint.Config{}), ended: make(chan error, 1)}
				r.Handle("k", func(context.Context, *queue.Attempt) error {
					time.Sleep(10 * time.Second)
					return retry.Permanent(errFault)
				})
				for range tasks {
					r.submit("k", queue.Options{})
				}
				r.start()
				over := make(chan struct{})
				others := make(chan struct{})
				go func() {
					defer close(others)
					for {
						select {
						case <-time.After(50 * time.Millisecond):
							r.submit("of others", queue.Options{})
						case <-over:
							return
						}
					}
				}()
				time.Sleep(9990 * time.Millisecond)
				begun := time.Now()
				r.end()
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("others kept Run from its end for %s", took)
				}
				if ended != tasks || dead != tasks {
					t.Errorf("OnEvent received %d ends and OnDead %d, want %d each", ended, dead, tasks)
				}
				close(over)
				<-others
			})
		})
	}
}

// Each Run is a worker of its own: that one of them has other queues does not hide
// those of the other.
func TestC1_RunsAreWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Worker: "w", Grace: time.Second})
		r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return ctx.Err() })
		r.start("a")
		other := &rig{T: t, Queue: r.Queue, store: r.store, slots: stint.New(3, stint.Config{}), ended: make(chan error, 1)}
		other.start("b")
		time.Sleep(10 * time.Second)
		running := r.submit("k", queue.Options{Queue: "a"})
		if by := r.is(running, queue.Running).Lease.Worker; by != "w" {
			t.Errorf("the first Run claims as %q", by)
		}
		stats, err := r.Stats(t.Context())
		if err != nil || len(stats.Workers) != 2 {
			t.Fatalf("workers %+v, %v; want both Runs", stats.Workers, err)
		}
		for _, w := range stats.Workers {
			if want := map[string]int{"w": 1, "w-2": 3}[w.Name]; w.Slots != want || len(w.Kinds) != 1 {
				t.Errorf("worker %+v, want one queue and %d slots", w, want)
			}
		}
		other.end()
		other.start("b")
		if id := r.submit("k", queue.Options{Queue: "b"}); other.is(id, queue.Running).Lease.Worker != "w-2" {
			t.Error("a name that is free is not used again")
		}
		other.end()
		r.end()
	})
}

// Hooks also receive what the maintenance of a process changes after its last outcome.
func TestC3_HooksReceiveTheLastMaintenance(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			const tasks, due = 20, 10 * time.Second
			dead := 0
			store := memstore.New(memstore.Config{})
			r := &rig{
				T: t, store: store, slots: stint.New(1, stint.Config{}), ended: make(chan error, 1),
				Queue: queue.New(&skewed{store, ahead}, queue.Config{OnEvent: func(_ context.Context, e queue.Event) {
					if e.To == queue.Dead {
						dead++
					}
					time.Sleep(20 * time.Millisecond) // it lags behind
				}}),
			}
			r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
			r.start()
			r.is(r.submit("k", queue.Options{}), queue.Succeeded)
			for range tasks {
				r.submit("of nobody", queue.Options{Deadline: time.Now().Add(ahead + due)})
			}
			time.Sleep(due + time.Millisecond)
			r.end()
			if dead != tasks {
				t.Errorf("with a clock that is %s ahead, OnEvent received %d dead letters of %d", ahead, dead, tasks)
			}
		})
	}
}
