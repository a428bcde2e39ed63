package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
)

// Callers that come while calls are under way share the next one. Each gets the receipts of
// its own tasks. If the shared call is refused, each is answered for its own tasks.
func TestC11_FollowersShareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []int // the tasks of each
		submit := cluster.Submits(func(_ context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, len(tasks))
			receipts := make([]queue.Receipt, len(tasks))
			for i := range tasks {
				if tasks[i].Kind == "bad" {
					return nil, fmt.Errorf("%w: a bad task", queue.ErrInvalid)
				}
				receipts[i].ID = tasks[i].ID
			}
			return receipts, nil
		})
		var ids queue.IDs
		var all sync.WaitGroup
		for i := range 20 {
			tasks := make([]queue.NewTask, 1+i%3)
			for k := range tasks {
				tasks[k] = queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "good"}}
			}
			bad := i == 15
			if bad {
				tasks[0].Kind = "bad"
			}
			all.Go(func() {
				receipts, err := submit(t.Context(), time.Now(), tasks)
				if bad {
					if !errors.Is(err, queue.ErrInvalid) {
						t.Errorf("a bad task: %v", err)
					}
					return
				}
				if err != nil || len(receipts) != len(tasks) {
					t.Errorf("%d receipts for %d tasks: %v", len(receipts), len(tasks), err)
					return
				}
				for k := range tasks {
					if receipts[k].ID != tasks[k].ID {
						t.Errorf("the receipt of task %s is that of %s", tasks[k].ID, receipts[k].ID)
					}
				}
			})
			synctest.Wait()
		}
		all.Wait()
		// Two at once, a shared one, and two for each of its parts with the bad task, which are 9, 5 and
		// 2 of its 18 callers.
		if n := len(calls); n != 2+1+4*2 {
			t.Errorf("there were %d calls: %v", n, calls)
		}
	})
}

// A follower has few calls under way also if all of them are refused, as at a queue that is full.
func TestC11_RefusedCallsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, most atomic.Int32
		submit := cluster.Submits(func(_ context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			n := sent.Add(1)
			defer sent.Add(-1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			time.Sleep(time.Millisecond)
			return nil, fmt.Errorf("%w: %d tasks", queue.ErrFull, len(tasks))
		})
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if _, err := submit(t.Context(), time.Now(), make([]queue.NewTask, 1)); !errors.Is(err, queue.ErrFull) {
					t.Errorf("a task at a queue that is full: %v", err)
				}
			})
		}
		all.Wait()
		if most.Load() > 2 {
			t.Errorf("there were %d calls at once", most.Load())
		}
	})
}

// The receipts of a caller are its own: what it appends to them changes none of another caller.
func TestC11_SharedCallsHaveTheirOwnReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		submit := cluster.Submits(func(_ context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			time.Sleep(time.Second)
			receipts := make([]queue.Receipt, len(tasks))
			for i := range tasks {
				receipts[i].ID = tasks[i].ID
			}
			return receipts, nil
		})
		var ids queue.IDs
		var all sync.WaitGroup
		sent, answers := make([]queue.ID, 5), make([][]queue.Receipt, 5) // two calls at once, and three callers of one
		for i := range sent {
			sent[i] = ids.New(time.Now())
			all.Go(func() {
				tasks := []queue.NewTask{{ID: sent[i], Spec: queue.Spec{Kind: "good"}}}
				var err error
				if answers[i], err = submit(t.Context(), time.Now(), tasks); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for _, receipts := range answers {
			_ = append(receipts, queue.Receipt{Existing: true})
		}
		for i, receipts := range answers {
			if len(receipts) != 1 || receipts[0].ID != sent[i] {
				t.Errorf("the receipts of caller %d are %+v, want one of task %s", i, receipts, sent[i])
			}
		}
	})
}

// A caller whose context ends does not wait for the call that it shares, and others are
// answered.
func TestC11_SharedCallsOutliveTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		submit := cluster.Submits(func(ctx context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			select {
			case <-time.After(time.Minute):
				return make([]queue.Receipt, len(tasks)), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 4)
		for i := range 4 { // two calls, and two callers of a shared one
			of := t.Context()
			if i == 2 {
				of = ctx
			}
			go func() {
				_, err := submit(of, time.Now(), make([]queue.NewTask, 1))
				errs <- err
			}()
			synctest.Wait()
		}
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller whose context has ended gets %v", err)
		}
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A call that has waited states the time at which it is sent: the leader would take the age of
// the call for a difference of the clocks, and move the times of its tasks.
func TestC11_SharedCallsStateTheTimeOfSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		submit := cluster.Submits(func(_ context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			if late := time.Since(now); late != 0 {
				t.Errorf("a call of %d tasks is sent %s after its time", len(tasks), late)
			}
			time.Sleep(3 * time.Second)
			if len(tasks) > 1 {
				return nil, fmt.Errorf("%w: one of them", queue.ErrInvalid) // each caller sends a call of its own
			}
			return make([]queue.Receipt, len(tasks)), nil
		})
		var all sync.WaitGroup
		for range 4 { // two calls, and two callers of a shared one
			all.Go(func() {
				if _, err := submit(t.Context(), time.Now(), make([]queue.NewTask, 1)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// awayFor is a store that is not available at first, and expects the present time in calls.
type awayFor struct {
	queue.Store
	t     *testing.T
	until time.Time
}

func (a awayFor) Submit(_ context.Context, now time.Time, _ []queue.NewTask) ([]queue.Receipt, error) {
	if late := time.Since(now); late != 0 {
		a.t.Errorf("an attempt is made %s after its time", late)
	}
	if time.Now().Before(a.until) {
		return nil, queue.ErrUnavailable
	}
	return nil, nil
}

// A call that is made again states the time of its last attempt, for the same reason.
func TestC11_CallsMadeAgainStateTheTimeOfTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := cluster.LeaderOf(awayFor{t: t, until: time.Now().Add(5 * time.Second)})
		if _, err := n.Submit(t.Context(), time.Now(), nil); err != nil {
			t.Error(err)
		}
	})
}

// While no leader answers, a caller that has waited for as long as a call may take has its error: the last of many
// would wait for many times as long. One that came later has its own patience.
func TestC11_SharedCallsHaveOnePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 20 * time.Second
		submit := cluster.Submits(func(context.Context, time.Time, []queue.NewTask) ([]queue.Receipt, error) {
			time.Sleep(patience)
			return nil, queue.ErrUnavailable
		})
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := submit(t.Context(), time.Now(), make([]queue.NewTask, queue.MaxSubmit))
				if !errors.Is(err, queue.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 2*patience {
			t.Errorf("the last caller is answered after %s", took)
		}
		for i := range 4 { // two calls, and two callers of a shared one
			if i == 3 {
				time.Sleep(patience / 2)
			}
			all.Go(func() {
				began := time.Now()
				_, _ = submit(t.Context(), time.Now(), make([]queue.NewTask, 1))
				if took := time.Since(began); took < patience || took > 2*patience {
					t.Errorf("caller %d is answered after %s", i, took)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// The tasks of a caller whose context has ended are not sent, unless they are under way.
func TestC11_LeftCallsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		submit := cluster.Submits(func(_ context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			sent += len(tasks)
			time.Sleep(time.Minute)
			return make([]queue.Receipt, len(tasks)), nil
		})
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var all sync.WaitGroup
		for i, n := range []int{1, 1, 100, 10, queue.MaxSubmit} { // the third and fourth would share a call
			ctx := t.Context()
			if i == 2 || i == 4 {
				ctx = short
			}
			all.Go(func() {
				receipts, err := submit(ctx, time.Now(), make([]queue.NewTask, n))
				if left := errors.Is(err, context.DeadlineExceeded); left != (ctx == short) || !left && len(receipts) != n {
					t.Errorf("caller %d has %d receipts, %v", i, len(receipts), err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if sent != 12 {
			t.Errorf("%d tasks are sent, want 12", sent)
		}
	})
}

// partly is a store whose commands change some tasks, and cannot read others.
type partly struct {
	queue.Store
	calls int
}

func (s *partly) Command(context.Context, time.Time, queue.Command) (int, error) {
	s.calls++
	return 3, queue.ErrUnavailable
}

// A command that has changed some tasks is not repeated: it would change more than its limit.
func TestC11_CommandInPartIsNotRepeated(t *testing.T) {
	s := new(partly)
	changed, err := cluster.LeaderOf(s).Command(t.Context(), time.Now(), queue.Command{Do: queue.OrderPause, Limit: 3})
	if changed != 3 || !errors.Is(err, queue.ErrUnavailable) || s.calls != 1 {
		t.Errorf("%d calls, %d changed: %v", s.calls, changed, err)
	}
}

// A caller that has left owns its tasks again, also while the call that it shared is under way.
func TestC11_LeftCallHasItsOwnTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 3 // two at once, and the one that is left
		var sent atomic.Int32
		change := make(chan struct{})
		seen := ""
		submit := cluster.Submits(func(_ context.Context, _ time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
			if sent.Add(1) < calls {
				time.Sleep(time.Second)
			} else {
				<-change
				seen = string(tasks[0].Payload) + tasks[0].Labels["is"] + tasks[0].Queue
			}
			return make([]queue.Receipt, len(tasks)), nil
		})
		for range calls - 1 {
			go func() { _, _ = submit(t.Context(), time.Now(), make([]queue.NewTask, 1)) }()
		}
		synctest.Wait()
		task := queue.NewTask{Spec: queue.Spec{
			Payload: []byte("a"), Options: queue.Options{Queue: "c", Labels: map[string]string{"is": "b"}},
		}}
		tasks := []queue.NewTask{task}
		ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
		defer leave()
		if _, err := submit(ctx, time.Now(), tasks); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want that of the context", err)
		}
		tasks[0].Payload[0], tasks[0].Labels["is"], tasks[0].Queue = 'x', "x", "x"
		close(change)
		synctest.Wait()
		if seen != "abc" {
			t.Errorf("%q was sent, want %q: what the caller has changed since it left", seen, "abc")
		}
	})
}
