package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// sudden is a queue with one slot whose tasks are short, except one in the middle, which
// works until it is released: when it begins, some tasks behind it have been claimed and
// have no slot.
type sudden struct {
	*rig
	faults  *faulty
	ids     []queue.ID
	release chan struct{}
	down    atomic.Bool // no outcome is taken

	mu    sync.Mutex
	calls map[queue.ID]int
}

const suddenAt = 200 // which task is long

func newSudden(t *testing.T, cfg queue.Config) *sudden {
	t.Helper()
	r, faults := newFaultyRig(t, cfg)
	r.slots = stint.New(1, stint.Config{})
	s := &sudden{rig: r, faults: faults, release: make(chan struct{}), calls: map[queue.ID]int{}}
	faults.settle = func(ctx context.Context) error {
		if s.down.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	s.Handle("k", func(_ context.Context, a *queue.Attempt) error {
		s.mu.Lock()
		s.calls[a.ID]++
		s.mu.Unlock()
		if a.ID == s.ids[suddenAt] {
			<-s.release
		}
		return nil
	})
	for range 2 * suddenAt {
		s.ids = append(s.ids, s.submit("k", queue.Options{}))
	}
	s.start()
	return s
}

// prefetched returns the tasks that are claimed and have not started.
func (s *sudden) prefetched() (ids []queue.ID) {
	s.Helper()
	synctest.Wait()
	for task, err := range s.Find(s.Context(), queue.Filter{States: []queue.State{queue.Running}}) {
		if err != nil {
			s.Fatal(err)
		}
		if task.ID != s.ids[suddenAt] {
			ids = append(ids, task.ID)
		}
	}
	return ids
}

// all checks that all tasks but some have been done once, and no other at all.
func (s *sudden) all(but ...queue.ID) {
	s.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range s.ids {
		want := 1
		for _, other := range but {
			if other == id {
				want = 0
			}
		}
		if s.calls[id] != want {
			s.Errorf("task %d was called %d times, want %d", i, s.calls[id], want)
		}
	}
}

// A task that was claimed early and cannot start soon is released without a failure,
// and keeps its place.
func TestC1_ClaimedEarlyIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSudden(t, queue.Config{})
		early := s.prefetched()
		if len(early) == 0 || len(early) > 64 {
			t.Fatalf("%d tasks are claimed early; this shows nothing, or is too many", len(early))
		}
		time.Sleep(200 * time.Millisecond)
		if left := s.prefetched(); len(left) != 0 {
			t.Errorf("%d tasks are still claimed without a slot", len(left))
		}
		if task := s.is(early[0], queue.Waiting); task.Failures != 0 || task.Crashes != 0 {
			t.Errorf("%d failures and %d crashes of a task that has not started", task.Failures, task.Crashes)
		}
		urgent := s.submit("k", queue.Options{Tier: 3})
		s.ids = append(s.ids, urgent)
		time.Sleep(time.Hour)
		close(s.release)
		s.all()
		first := s.is(urgent, queue.Succeeded)
		if next := s.is(early[0], queue.Succeeded); next.Changed.Before(first.Changed) {
			t.Error("the task of the highest tier started after one that had been released")
		}
		s.end()
	})
}

// Orders reach what was claimed early: its handler is not called.
func TestC4_OrdersReachWhatIsClaimedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSudden(t, queue.Config{})
		early := s.prefetched()
		if len(early) < 2 {
			t.Fatal("nothing is claimed early: this shows nothing")
		}
		s.command(queue.OrderPause, early[0])
		s.command(queue.OrderCancel, early[1])
		time.Sleep(50 * time.Millisecond)
		close(s.release)
		s.is(early[0], queue.Paused)
		s.is(early[1], queue.Cancelled)
		s.all(early[0], early[1])
		s.end()
	})
}

// At a shutdown what was claimed early is released at once, and does not start.
func TestC5_ClaimedEarlyIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSudden(t, queue.Config{})
		early := s.prefetched()
		s.stop(errOver)
		if left := s.prefetched(); len(early) == 0 || len(left) != 0 {
			t.Errorf("of %d tasks claimed early %d are left", len(early), len(left))
		}
		claims := s.faults.claims.Load()
		close(s.release)
		s.end()
		if more := s.faults.claims.Load() - claims; more != 0 {
			t.Errorf("%d claims after the end", more)
		}
		s.all(s.ids[suddenAt+1:]...)
		for _, id := range s.ids[suddenAt+1:] {
			if task := s.is(id, queue.Waiting); task.Failures+task.Crashes != 0 {
				t.Errorf("%d failures and %d crashes", task.Failures, task.Crashes)
			}
		}
	})
}

// Short tasks are claimed many at a time, and long ones, whose slots come one by
// one, are not claimed early, except at the moment when the claims adapt.
func TestC1_ClaimsFollowTheWork(t *testing.T) {
	for _, c := range []struct {
		name       string
		work       time.Duration
		claims     int // at most, for 1000 tasks
		prefetched int // at most, a second after the start
	}{
		{"short", 0, 60, 0},
		{"long", 10 * time.Second, 1100, 0},
		{"some milliseconds", 20 * time.Millisecond, 1100, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, store := newFaultyRig(t, queue.Config{})
				var mu sync.Mutex
				working := 0
				r.Handle("k", func(context.Context, *queue.Attempt) error {
					mu.Lock()
					working++
					mu.Unlock()
					time.Sleep(c.work)
					mu.Lock()
					working--
					mu.Unlock()
					return nil
				})
				for range 1000 {
					r.submit("k", queue.Options{})
				}
				r.start()
				time.Sleep(time.Second + 10*time.Millisecond)
				synctest.Wait()
				st, err := r.Stats(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				prefetched := st.Queues["default"].States[queue.Running] - working
				mu.Unlock()
				if prefetched > c.prefetched {
					t.Errorf("%d tasks are claimed without a slot, want at most %d", prefetched, c.prefetched)
				}
				for done := 0; done < 1000; {
					time.Sleep(c.work + time.Second)
					if st, err = r.Stats(t.Context()); err != nil {
						t.Fatal(err)
					}
					done = st.Queues["default"].States[queue.Succeeded]
				}
				if calls := store.claims.Load(); calls > int64(c.claims) {
					t.Errorf("%d claims, want at most %d", calls, c.claims)
				}
				r.end()
			})
		})
	}
}

// A store that takes no outcomes does not keep the queue from halting, though there
// are tasks to release and no room for their outcomes.
func TestC5_HaltThoughNothingCanBeReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSudden(t, queue.Config{})
		for range 2000 {
			s.ids = append(s.ids, s.submit("k", queue.Options{}))
		}
		s.down.Store(true)
		close(s.release)
		synctest.Wait()
		s.Halt()
		begun := time.Now()
		if err := <-s.ended; err == nil || time.Since(begun) > time.Second {
			t.Errorf("Run returned %v after %s", err, time.Since(begun))
		}
		s.stop(errOver)
		time.Sleep(time.Hour) // until the settler gives up
	})
}
