package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// faulty is a store between which and its caller something goes wrong. What
// before returns is the answer of a call, if it is not nil; after is called when
// the store has done it.
type faulty struct {
	queue.Store
	before   func(call string) error
	after    func(call string)
	settle   func(ctx context.Context) error // as before, for Settle
	maintain func(ctx context.Context) error // as before, for Maintain

	behind    time.Duration // the times that Claim and Maintain answer with are so much earlier
	claims    atomic.Int64
	maintains atomic.Int64
}

func (f *faulty) meet(call string) error {
	if f.before == nil {
		return nil
	}
	return f.before(call)
}

func (f *faulty) met(call string) {
	if f.after != nil {
		f.after(call)
	}
}

func (f *faulty) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if err := f.meet("claim"); err != nil {
		return queue.Claimed{}, err
	}
	defer f.met("claim")
	f.claims.Add(1)
	claimed, err := f.Store.Claim(ctx, now, c)
	if !claimed.Next.IsZero() {
		claimed.Next = claimed.Next.Add(-f.behind)
	}
	return claimed, err
}

func (f *faulty) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if err := f.meet("settle"); err != nil {
		return nil, err
	}
	if f.settle != nil {
		if err := f.settle(ctx); err != nil {
			return nil, err
		}
	}
	defer f.met("settle")
	return f.Store.Settle(ctx, now, outcomes)
}

func (f *faulty) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	f.maintains.Add(1)
	if f.maintain != nil {
		if err := f.maintain(ctx); err != nil {
			return time.Time{}, err
		}
	}
	next, err := f.Store.Maintain(ctx, now, limit)
	if !next.IsZero() {
		next = next.Add(-f.behind)
	}
	return next, err
}

func (f *faulty) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	if err := f.meet("heartbeat"); err != nil {
		return nil, err
	}
	defer f.met("heartbeat")
	return f.Store.Heartbeat(ctx, now, w, heartbeats)
}

func (f *faulty) Find(ctx context.Context, filter queue.Filter, p queue.Page) ([]queue.Task, error) {
	if err := f.meet("find"); err != nil {
		return nil, err
	}
	defer f.met("find")
	return f.Store.Find(ctx, filter, p)
}

func (f *faulty) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	if err := f.meet("watch"); err != nil {
		return err
	}
	return f.Store.Watch(ctx, begun, fn)
}

func newFaultyRig(t *testing.T, cfg queue.Config) (*rig, *faulty) {
	t.Helper()
	r := &rig{
		T: t, store: memstore.New(memstore.Config{}), slots: stint.New(4, stint.Config{}), ended: make(chan error, 1),
	}
	f := &faulty{Store: r.store}
	r.Queue = queue.New(f, cfg)
	return r, f
}

var errFault = errors.New("a fault of the test")

// A task that is submitted while a claim comes back with nothing does not
// wait for the next poll.
func TestC1_NoTaskIsOverlooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Poll: 24 * time.Hour})
		store.after = func(call string) {
			if call == "claim" {
				time.Sleep(time.Second)
			}
		}
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error { return nil })
		r.start() // the first claim is on its way back
		for range 20 {
			id := r.submit("k", queue.Options{})
			time.Sleep(700 * time.Millisecond)
			r.submit("k", queue.Options{})
			time.Sleep(10 * time.Second)
			r.is(id, queue.Succeeded)
		}
		if st, err := r.Stats(t.Context()); err != nil || st.Queues["default"].States[queue.Succeeded] != 40 {
			t.Errorf("states %v, error %v; want 40 succeeded", st.Queues["default"].States, err)
		}
		r.end()
	})
}

// Retries start on time although the queue is not polled, also by a policy
// in which each delay follows from the previous one.
func TestC2_DelaysFollowThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := func() uint64 { return 1 << 62 }
		r, _ := newFaultyRig(t, queue.Config{Poll: 24 * time.Hour, Random: random})
		var starts []time.Duration
		begun := time.Now()
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			starts = append(starts, time.Since(begun))
			return errFault
		})
		r.start()
		const attempts = 6
		r.submit("k", queue.Options{MaxAttempts: attempts})
		time.Sleep(time.Hour)
		synctest.Wait()
		want, delay := []time.Duration{0}, time.Duration(0)
		policy := retry.TaskPolicy()
		policy.Attempts = attempts
		for attempt := 1; attempt < attempts; attempt++ {
			var ok bool
			if delay, ok = policy.Next(attempt, delay, random); !ok {
				t.Fatal("the policy gives up early")
			}
			want = append(want, want[len(want)-1]+delay)
		}
		if !slices.Equal(starts, want) {
			t.Errorf("started after %v, want %v", starts, want)
		}
		r.end()
	})
}

// A downtime between two attempts does not count as the delay between them, from which the next
// one grows; nor does a snooze.
func TestC2_DelaysAfterADowntime(t *testing.T) {
	for name, wait := range map[string]struct{ down, snooze time.Duration }{
		"neither": {}, "a downtime": {down: time.Hour}, "a snooze": {snooze: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := func() uint64 { return 1 << 62 }
				r := newRig(t, 1, queue.Config{Random: random})
				calls := 0
				var begun atomic.Int64 // the last attempt, in nanoseconds since 1970
				r.Handle("k", func(context.Context, *queue.Attempt) error {
					begun.Store(time.Now().UnixNano())
					if calls++; calls == 2 && wait.snooze > 0 {
						return queue.Snooze(wait.snooze)
					}
					return errFault
				})
				r.start()
				id := r.submit("k", queue.Options{MaxAttempts: 4})
				delay := func(task queue.Task) time.Duration { return time.Duration(task.RunAt.UnixNano() - begun.Load()) }
				first := delay(r.is(id, queue.Scheduled))
				if wait.down > 0 {
					r.end()
					time.Sleep(wait.down)
					r.start()
				}
				time.Sleep(first + wait.snooze + 50*time.Millisecond) // less than the next delay
				policy := retry.TaskPolicy()
				policy.Attempts = 4
				want, _ := policy.Next(2, first, random)
				if task := r.is(id, queue.Scheduled); task.Failures != 2 || delay(task) != want {
					t.Errorf("after %d failures the delay is %s, want %s after %s", task.Failures, delay(task), want, first)
				}
				r.end()
			})
		})
	}
}

// A report that cannot be sent is sent when the store can be reached again, and the handler
// keeps its task as long as its lease can last.
func TestC8_FailedHeartbeatsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Lease: time.Minute})
		var down atomic.Bool
		store.before = func(call string) error {
			if down.Load() && call == "heartbeat" {
				return errFault
			}
			return nil
		}
		saved := make(chan struct{})
		queue.Kind[any]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[any]) error {
			<-saved
			j.Save([]byte("half"))
			j.Report(queue.Progress{Done: 1, Total: 2})
			time.Sleep(time.Hour)
			return nil
		})
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		time.Sleep(time.Millisecond)
		down.Store(true)
		close(saved)
		time.Sleep(30 * time.Second)
		if task := r.is(id, queue.Running); task.Checkpoint != nil {
			t.Fatal("the checkpoint came through")
		}
		down.Store(false)
		time.Sleep(2 * time.Second)
		if task := r.is(id, queue.Running); string(task.Checkpoint) != "half" || task.Progress.Done != 1 {
			t.Errorf("checkpoint %q and progress %+v", task.Checkpoint, task.Progress)
		}
		time.Sleep(time.Hour)
		r.is(id, queue.Succeeded)
		r.end()
	})
}

// The context of a handler ends with its lease, because another worker may have
// its task.
func TestC6_HandlerEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Lease: time.Minute})
		var down atomic.Bool
		store.before = func(call string) error {
			if down.Load() && call == "heartbeat" {
				return errFault
			}
			return nil
		}
		var mu sync.Mutex
		var causes []error
		var took time.Duration
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			begun := time.Now()
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			causes = append(causes, context.Cause(ctx))
			took = time.Since(begun)
			return ctx.Err()
		})
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		down.Store(true)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		mu.Lock()
		if len(causes) != 1 || !errors.Is(causes[0], queue.ErrStale) || took < time.Minute || took > 62*time.Second {
			t.Errorf("ended after %s by %v; want one that ended with its lease, after a minute", took, causes)
		}
		mu.Unlock()
		down.Store(false)
		r.is(id, queue.Running) // once more
		r.command(queue.OrderPause, id)
		r.end()
	})
}

// The outcome of work that is done is not lost because the store cannot be
// reached for a while, which may be longer than a lease.
func TestC6_OutcomesWaitForTheStore(t *testing.T) {
	for _, away := range []time.Duration{40 * time.Second, 10 * time.Minute} {
		t.Run(away.String(), func(t *testing.T) { outcomeWaits(t, away) })
	}
}

func outcomeWaits(t *testing.T, away time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Lease: time.Minute})
		begun, calls := time.Now(), 0
		store.before = func(call string) error {
			if call == "settle" && time.Since(begun) < away {
				return errFault
			}
			return nil
		}
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			calls++
			return nil
		})
		r.start()
		id := r.submit("k", queue.Options{})
		time.Sleep(away - 10*time.Second)
		r.is(id, queue.Running)
		time.Sleep(30 * time.Second)
		r.is(id, queue.Succeeded)
		if calls != 1 {
			t.Errorf("called %d times", calls)
		}
		r.end()
	})
}

// However seldom a Run polls, an outcome is settled soon after the store is back.
func TestC6_OutcomesDoNotWaitForThePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Poll: 24 * time.Hour})
		begun := time.Now()
		store.before = func(call string) error {
			if call == "settle" && time.Since(begun) < time.Hour {
				return errFault
			}
			return nil
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		id := r.submit("k", queue.Options{})
		time.Sleep(time.Hour + 2*time.Second)
		r.is(id, queue.Succeeded)
		r.end()
	})
}

// A checkpoint that is on its way to the store when the handler ends is not
// lost: the outcome takes it along.
func TestC8_CheckpointOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Retry: retry.Policy{Base: 10 * time.Second}})
		var slow sync.Once
		store.before = func(call string) error {
			if call == "heartbeat" {
				slow.Do(func() { time.Sleep(3 * time.Second) })
			}
			return nil
		}
		found := make(chan string, 2)
		queue.Kind[any]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[any]) error {
			found <- string(j.Checkpoint)
			if len(found) > 1 {
				return nil
			}
			j.Save([]byte("half"))
			time.Sleep(time.Second)
			return errFault
		})
		r.start()
		r.is(r.submit("k", queue.Options{}), queue.Running)
		time.Sleep(time.Minute)
		<-found
		if second := <-found; second != "half" {
			t.Errorf("the second attempt finds %q", second)
		}
		r.end()
	})
}

// A store that does not answer at all ends no lease later than one that says so.
func TestC6_HandlerEndsThoughTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Lease: 3 * time.Second})
		hang := make(chan struct{})
		store.before = func(call string) error {
			if call == "heartbeat" {
				<-hang
			}
			return nil
		}
		took := make(chan time.Duration, 100)
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			begun := time.Now()
			<-ctx.Done()
			took <- time.Since(begun)
			return ctx.Err()
		})
		r.start()
		r.submit("k", queue.Options{MaxCrashes: 1})
		time.Sleep(10 * time.Second)
		if d := <-took; d != 3*time.Second {
			t.Errorf("the handler ended after %s, want with its lease", d)
		}
		close(hang)
		r.end()
	})
}
