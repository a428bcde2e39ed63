package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// rig is a queue on a store in memory, in a bubble, and what runs it.
type rig struct {
	*testing.T
	*queue.Queue
	store memstore.Store
	slots stint.Scheduler
	stop  context.CancelCauseFunc
	ended chan error
}

func newRig(t *testing.T, limit int, cfg queue.Config) *rig {
	t.Helper()
	store := memstore.New(memstore.Config{MaxCheckpoint: 1000, MaxResult: 1000})
	return &rig{
		T: t, Queue: queue.New(store, cfg), store: store, slots: stint.New(limit, stint.Config{}),
		ended: make(chan error, 1),
	}
}

var errOver = errors.New("the test is over")

// start runs the queue, until the test or stop ends it.
func (r *rig) start(queues ...string) {
	r.Helper()
	ctx, stop := context.WithCancelCause(r.Context())
	r.stop = stop
	go func() { r.ended <- r.Queue.Run(ctx, r.slots, queues...) }()
	synctest.Wait()
}

// end ends Run, and wants no error but why it was ended.
func (r *rig) end() {
	r.Helper()
	r.stop(errOver)
	if err := <-r.ended; !errors.Is(err, errOver) {
		r.Errorf("Run returned %v, want %v", err, errOver)
	}
	synctest.Wait()
	if st := r.slots.Stats(); st.Running != 0 || st.Queued != 0 {
		r.Errorf("%d slots are in use and %d wait after the end", st.Running, st.Queued)
	}
}

func (r *rig) submit(kind string, o queue.Options) queue.ID {
	r.Helper()
	receipt, err := queue.Kind[any](kind).Submit(r.Context(), r.Queue, nil, o)
	if err != nil {
		r.Fatal(err)
	}
	return receipt.ID
}

// is checks the state of a task, and returns it.
func (r *rig) is(id queue.ID, want queue.State) queue.Task {
	r.Helper()
	synctest.Wait()
	task, err := r.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	if task.State != want {
		r.Fatalf("the task is %s, want %s; its life: %+v", task.State, want, task.Steps)
	}
	return task
}

func (r *rig) command(do queue.Order, id queue.ID) {
	r.Helper()
	n, err := r.Command(r.Context(), queue.Command{Do: do, Filter: queue.Filter{IDs: []queue.ID{id}}, By: "tester"})
	if err != nil || n != 1 {
		r.Fatalf("%s changed %d tasks, error %v", do, n, err)
	}
}

type email struct{ To string }

func TestC1_SubmitHandleSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{})
		var got []string
		queue.Kind[email]("email").Handle(r.Queue, func(_ context.Context, j *queue.Job[email]) error {
			got = append(got, j.Args.To)
			return j.Return(len(j.Args.To))
		})
		r.start()
		receipt, err := queue.Kind[email]("email").Submit(r.Context(), r.Queue, email{"ann@example.com"}, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		task := r.is(receipt.ID, queue.Succeeded)
		if !slices.Equal(got, []string{"ann@example.com"}) || string(task.Result) != "15" {
			t.Errorf("handled %v with result %s", got, task.Result)
		}
		r.end()
	})
}

// Of the tasks that are ready, those of a higher tier start first; the handler's
// context carries the tier on.
func TestC1_HigherTiersStartFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		var order []stint.Priority
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, j *queue.Job[any]) error {
			order = append(order, stint.PriorityFrom(ctx))
			return nil
		})
		for _, tier := range []stint.Priority{stint.Low, stint.Normal, stint.Highest, stint.High} {
			r.submit("k", queue.Options{Tier: tier})
		}
		r.start()
		if want := []stint.Priority{stint.Highest, stint.High, stint.Normal, stint.Low}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		r.end()
	})
}

// Work that a handler has done by the same scheduler runs on its slot.
func TestC1_HandlersMayUseTheScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			_, err := stint.Run(ctx, r.slots, func(context.Context) (int, error) { return 0, nil })
			return err
		})
		r.start()
		r.is(r.submit("k", queue.Options{}), queue.Succeeded)
		r.end()
	})
}

func TestC1_OnlySlotsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, queue.Config{})
		var mu sync.Mutex
		running, most, done := 0, 0, 0
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			done++
			mu.Unlock()
			return nil
		})
		for range 30 {
			r.submit("k", queue.Options{})
		}
		r.start()
		begun := time.Now()
		for mine := 0; mine < 30; {
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			mine = done
			mu.Unlock()
		}
		if took := time.Since(begun); most != 3 || took != 10*time.Second {
			t.Errorf("at most %d ran at once, and it took %s; want 3 and 10 s", most, took)
		}
		r.end()
	})
}

func TestC2_FailuresAreRetriedAndThenDead(t *testing.T) {
	policy := retry.Policy{Base: time.Second, Factor: 2}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Retry: policy})
		var starts []time.Duration
		begun := time.Now()
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			starts = append(starts, time.Since(begun))
			return fmt.Errorf("failure %d", len(starts))
		})
		r.start()
		id := r.submit("k", queue.Options{MaxAttempts: 4})
		time.Sleep(time.Minute)
		task := r.is(id, queue.Dead)
		if want := []time.Duration{0, 1e9, 3e9, 7e9}; !slices.Equal(starts, want) {
			t.Errorf("started after %v, want %v", starts, want)
		}
		if task.Failures != 4 || task.Error != "failure 4" {
			t.Errorf("%d failures, the last %q", task.Failures, task.Error)
		}
		r.end()
	})
}

// pointerError is an error whose nil pointer panics.
type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

func TestC2_OutcomesOfHandlers(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle func(context.Context) error
		state  queue.State
		text   string // is part of the error
		runAt  time.Duration
	}{
		{"permanent", func(context.Context) error { return retry.Permanent(errOver) }, queue.Dead, "is over", 0},
		{"after", func(context.Context) error { return retry.After(time.Hour, errOver) }, queue.Scheduled, "over", time.Hour},
		{"snooze", func(context.Context) error { return queue.Snooze(time.Hour) }, queue.Scheduled, "", time.Hour},
		{"panic", func(context.Context) error { panic("oh no") }, queue.Dead, "run_test.go", 0},
		{"goexit", func(context.Context) error { runtime.Goexit(); return nil }, queue.Dead, "Goexit", 0},
		{"error that panics", func(context.Context) error { return (*pointerError)(nil) }, queue.Dead, "nil pointer", 0},
		{"shortage of nil", func(context.Context) error { return queue.Shortage(nil) }, queue.Succeeded, "", 0},
		{"shortage after the timeout", func(ctx context.Context) error {
			<-ctx.Done()
			return queue.Shortage(errOver)
		}, queue.Dead, "is over", 0},
		{"timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, queue.Dead, "deadline", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{})
				queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error { return c.handle(ctx) })
				r.start()
				begun := time.Now()
				spec := queue.Options{Timeout: time.Second, MaxAttempts: 1}
				if c.state == queue.Scheduled {
					spec.MaxAttempts = 2
				}
				id := r.submit("k", spec)
				time.Sleep(2 * time.Second)
				task := r.is(id, c.state)
				if !strings.Contains(task.Error, c.text) {
					t.Errorf("error %q, want one with %q", task.Error, c.text)
				}
				if c.runAt > 0 && !task.RunAt.Equal(begun.Add(c.runAt)) {
					t.Errorf("it is to run %s after its start, want %s", task.RunAt.Sub(begun), c.runAt)
				}
				if c.name == "snooze" && task.Failures != 0 {
					t.Error("snoozing is no failure")
				}
				r.end()
			})
		})
	}
}

func TestC8_DelayedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Poll: time.Hour})
		var started time.Time
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			started = time.Now()
			return nil
		})
		r.start()
		at := time.Now().Add(1234567 * time.Microsecond)
		id := r.submit("k", queue.Options{RunAt: at})
		r.is(id, queue.Scheduled)
		time.Sleep(2 * time.Second)
		r.is(id, queue.Succeeded)
		if !started.Equal(at) {
			t.Errorf("started %s after its time", started.Sub(at))
		}
		r.end()
	})
}

// A handler works longer than its lease, and what it reports is seen.
func TestC8_LongWorkKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Lease: 3 * time.Second})
		calls := 0
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, j *queue.Job[any]) error {
			calls++
			for i := range int64(60) {
				j.Report(queue.Progress{Done: i, Total: 60})
				j.Save([]byte{byte(i)})
				time.Sleep(time.Second)
			}
			return ctx.Err()
		})
		r.start()
		id := r.submit("k", queue.Options{})
		time.Sleep(30*time.Second + time.Millisecond)
		task := r.is(id, queue.Running)
		if task.Progress.Done < 28 || len(task.Checkpoint) != 1 || task.Checkpoint[0] < 28 {
			t.Errorf("progress %+v and checkpoint %v after 30 s", task.Progress, task.Checkpoint)
		}
		time.Sleep(time.Minute)
		r.is(id, queue.Succeeded)
		if calls != 1 {
			t.Errorf("called %d times", calls)
		}
		r.end()
	})
}

// A worker that has nothing to do is known to be there, however long its leases and polls are.
func TestC8_IdleWorkerIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Poll: time.Hour, Lease: 24 * time.Hour})
		r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		for range 10 {
			time.Sleep(time.Minute)
			if st, err := r.Stats(t.Context()); err != nil || len(st.Workers) != 1 {
				t.Fatalf("%d workers, %v", len(st.Workers), err)
			}
		}
		r.end()
	})
}

// A checkpoint that is too large costs its own task, and not all others their
// leases.
func TestC8_CheckpointTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{Lease: 3 * time.Second})
		queue.Kind[any]("large").Handle(r.Queue, func(ctx context.Context, j *queue.Job[any]) error {
			j.Save(make([]byte, 2000))
			<-ctx.Done()
			return ctx.Err()
		})
		queue.Kind[any]("good").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			time.Sleep(time.Minute)
			return nil
		})
		r.start()
		good, large := r.submit("good", queue.Options{}), r.submit("large", queue.Options{})
		time.Sleep(2 * time.Minute)
		if task := r.is(large, queue.Dead); !strings.Contains(task.Error, "2000 bytes") {
			t.Errorf("error %q", task.Error)
		}
		r.is(good, queue.Succeeded)
		r.end()
	})
}

// A checkpoint that is too large does not undo a success.
func TestC8_SuccessWithCheckpointTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Lease: 3 * time.Second})
		queue.Kind[time.Duration]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[time.Duration]) error {
			j.Save(make([]byte, 2000))
			time.Sleep(j.Args)
			return j.Return("done")
		})
		r.start()
		for _, wait := range []time.Duration{0, 10 * time.Second} { // without and with heartbeats
			receipt, err := queue.Kind[time.Duration]("k").Submit(r.Context(), r.Queue, wait, queue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			if task := r.is(receipt.ID, queue.Succeeded); string(task.Result) != `"done"` || task.Checkpoint != nil {
				t.Errorf("result %s, checkpoint of %d bytes", task.Result, len(task.Checkpoint))
			}
		}
		r.end()
	})
}

func TestC3_ResultTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		queue.Kind[any]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[any]) error {
			return j.Return(strings.Repeat("x", 2000))
		})
		r.start()
		if task := r.is(r.submit("k", queue.Options{}), queue.Dead); !strings.Contains(task.Error, "result") {
			t.Errorf("error %q", task.Error)
		}
		r.end()
	})
}

func TestC4_OrdersReachHandlers(t *testing.T) {
	for do, want := range map[queue.Order]struct {
		cause error
		state queue.State
	}{
		queue.OrderPause:  {queue.ErrPaused, queue.Paused},
		queue.OrderCancel: {queue.ErrCancelled, queue.Cancelled},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1, queue.Config{Poll: time.Minute})
			var cause error
			queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return ctx.Err()
			})
			r.start()
			id := r.submit("k", queue.Options{})
			r.is(id, queue.Running)
			r.command(do, id)
			task := r.is(id, want.state)
			if !errors.Is(cause, want.cause) || task.Failures != 0 {
				t.Errorf("%s: the cause is %v with %d failures", do, cause, task.Failures)
			}
			r.end()
		})
	}
}

// An order reaches the handler of a task at once, whichever call of Run has the task.
func TestC4_OrdersReachAllRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{Poll: time.Minute})
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r.start("a")
		stopFirst := r.stop
		r.start("b")
		inA, inB := r.submit("k", queue.Options{Queue: "a"}), r.submit("k", queue.Options{Queue: "b"})
		r.is(inA, queue.Running)
		r.is(inB, queue.Running)
		r.command(queue.OrderCancel, inA)
		r.is(inA, queue.Cancelled)
		r.command(queue.OrderCancel, inB)
		r.is(inB, queue.Cancelled)
		stopFirst(errOver)
		if err := <-r.ended; !errors.Is(err, errOver) {
			t.Errorf("Run returned %v, want %v", err, errOver)
		}
		r.end()
	})
}

func TestC5_GracefulShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		r.start()
		running := []queue.ID{r.submit("k", queue.Options{}), r.submit("k", queue.Options{})}
		waiting := r.submit("k", queue.Options{})
		r.is(waiting, queue.Waiting)
		begun := time.Now()
		r.end()
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("Run returned after %s, want when the handlers did, after 10 s", took)
		}
		for _, id := range running {
			r.is(id, queue.Succeeded)
		}
		r.is(waiting, queue.Waiting)
	})
}

// Handlers that take longer than they are given are interrupted, which is no
// failure of theirs.
func TestC5_InterruptedIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Grace: 5 * time.Second})
		var cause error
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return errors.New("interrupted in the middle")
		})
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		r.end()
		if task := r.is(id, queue.Waiting); task.Failures != 0 || task.Crashes != 0 || !errors.Is(cause, queue.ErrStopping) {
			t.Errorf("%d failures, %d crashes, cause %v", task.Failures, task.Crashes, cause)
		}
	})
}

// Nor is it a failure that the scheduler of a handler is closed.
func TestC5_ClosedSchedulerIsNotAFailure(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"Close": func(r *rig) { r.slots.Close() },
		"Drain": func(r *rig) {
			ctx, stop := context.WithTimeout(r.Context(), time.Second)
			defer stop()
			if err := r.slots.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
				r.Errorf("Drain returned %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{})
				r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return context.Cause(ctx) })
				r.start()
				id := r.submit("k", queue.Options{MaxAttempts: 1})
				r.is(id, queue.Running)
				end(r)
				if task := r.is(id, queue.Waiting); task.Failures != 0 || task.Crashes != 0 {
					t.Errorf("%d failures and %d crashes", task.Failures, task.Crashes)
				}
				r.end()
			})
		})
	}
}

func TestC5_HandlersThatDoNotEndAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Grace: time.Second, WaitDelay: time.Minute})
		release := make(chan struct{})
		queue.Kind[any]("stubborn").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			<-release
			return nil
		})
		r.start()
		id := r.submit("stubborn", queue.Options{})
		r.is(id, queue.Running)
		r.stop(errOver)
		stopped := time.Now()
		err := <-r.ended
		if !errors.Is(err, errOver) || !strings.Contains(err.Error(), id.String()+" (stubborn)") {
			t.Errorf("error %v, want one that names the task", err)
		}
		if took := time.Since(stopped); took != time.Minute+time.Second {
			t.Errorf("Run returned after %s", took)
		}
		close(release)
		r.is(id, queue.Succeeded)
	})
}

// Other work uses the slots too: the queue waits in the common order, and a runner that
// waits for a slot when Run ends stops waiting.
func TestC5_SharedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		done := 0
		queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
			done++
			return nil
		})
		permit, err := r.slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.start()
		id := r.submit("k", queue.Options{})
		time.Sleep(time.Minute)
		r.is(id, queue.Waiting)
		permit.Release()
		r.is(id, queue.Succeeded)
		permit, err = r.slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second := r.submit("k", queue.Options{})
		synctest.Wait()
		r.stop(errOver)
		if err := <-r.ended; !errors.Is(err, errOver) { // though the slot is still held
			t.Error(err)
		}
		permit.Release()
		r.is(second, queue.Waiting)
		if done != 1 {
			t.Errorf("%d handled, want 1", done)
		}
	})
}

func TestC12_QueuesShareTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		done := map[string]int{}
		var mu sync.Mutex
		queue.Kind[any]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[any]) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			done[j.Queue]++
			return nil
		})
		for range 5 {
			r.submit("k", queue.Options{Queue: "a"})
			r.submit("k", queue.Options{Queue: "b"})
		}
		r.start("a", "b")
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if done["a"] != 5 || done["b"] != 5 {
			t.Errorf("done %v after 5 s, want 5 of each", done)
		}
		r.end()
	})
}

func TestC7_SameUniqueGivesTheFirstBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		var (
			mu   sync.Mutex
			ids  = map[queue.ID]int{}
			news int
			all  sync.WaitGroup
		)
		for range 64 {
			all.Go(func() {
				receipt, err := queue.Kind[email]("k").Submit(t.Context(), r.Queue, email{}, queue.Options{Unique: "order-17"})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[receipt.ID]++
				if !receipt.Existing {
					news++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || news != 1 {
			t.Errorf("%d tasks, %d of them new, want one", len(ids), news)
		}
	})
}

// A task whose workers die is tried again, and put aside in the end; so is the
// same work submitted again, until the first is retried.
func TestC9_PoisonIsPutAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		id := r.submit("k", queue.Options{})
		for crash := range 3 {
			claimed, err := r.store.Claim(t.Context(), time.Now(), queue.Claim{
				Worker: fmt.Sprint("worker that dies ", crash), Kinds: []string{"k"}, Max: 1, Lease: time.Minute,
			})
			if err != nil || len(claimed.Tasks) != 1 {
				t.Fatalf("claimed %d tasks, error %v", len(claimed.Tasks), err)
			}
			time.Sleep(time.Minute)
			if _, err := r.store.Maintain(t.Context(), time.Now(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if task := r.is(id, queue.Dead); task.Crashes != 3 || task.Failures != 0 {
			t.Errorf("%d crashes and %d failures, want 3 and 0", task.Crashes, task.Failures)
		}
		if same := r.is(r.submit("k", queue.Options{}), queue.Dead); !strings.Contains(same.Error, id.String()) {
			t.Errorf("error %q, want one that names the first", same.Error)
		}
		r.command(queue.OrderRetry, id)
		r.is(r.submit("k", queue.Options{}), queue.Waiting)
	})
}
