package queuetest_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/queuetest"
	"github.com/stintgo/stint/retry"
)

var errTest = errors.New("an error of the test")

func nothing(context.Context, *queue.Job[any]) error { return nil }

func submit(t *testing.T, q *queue.Queue, kind string, o queue.Options) queue.ID {
	t.Helper()
	r, err := queue.Kind[any](kind).Submit(t.Context(), q, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{Retry: retry.Policy{Base: time.Hour}})
		var order []string
		queue.Kind[string]("k").Handle(q, func(ctx context.Context, j *queue.Job[string]) error {
			order = append(order, j.Args)
			if j.Args == "parent" { // more work, also in a queue without tasks so far
				_, err := queue.Kind[string]("k").Submit(ctx, q, "child", queue.Options{Queue: "other"})
				return err
			}
			if j.Args == "fails" && j.Failures == 0 {
				return errTest
			}
			time.Sleep(5 * time.Second)
			return nil
		})
		begun := time.Now()
		for _, args := range []string{"fails", "parent", "later", "first"} {
			o := queue.Options{}
			switch args {
			case "first":
				o.Tier = stint.High
			case "later":
				o.RunAt = begun.Add(30 * 24 * time.Hour)
			}
			if _, err := queue.Kind[string]("k").Submit(t.Context(), q, args, o); err != nil {
				t.Fatal(err)
			}
		}
		queuetest.Drain(t, q)
		if want := []string{"first", "fails", "parent", "child", "fails", "later"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		for _, task := range queuetest.All(t, q, queue.Filter{}) {
			if task.State != queue.Succeeded {
				t.Error(queuetest.Life(&task))
			}
		}
		if took := time.Since(begun); took < 30*24*time.Hour || took > 30*24*time.Hour+time.Minute {
			t.Errorf("it took %s, want 30 days", took)
		}
	})
}

// Drain leaves tasks that cannot make progress by themselves as they are.
func TestDrain_LeavesWhatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{})
		queue.Kind[any]("k").Handle(q, nothing)
		queue.Kind[any]("fails").Handle(q, func(context.Context, *queue.Job[any]) error { return retry.Permanent(errTest) })
		dead := submit(t, q, "fails", queue.Options{})
		paused := submit(t, q, "k", queue.Options{})
		if n, err := q.Command(t.Context(), queue.Command{
			Do: queue.OrderPause, Filter: queue.Filter{IDs: []queue.ID{paused}},
		}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if err := q.PauseQueue(t.Context(), "closed", queue.Pause{By: "test"}); err != nil {
			t.Fatal(err)
		}
		want := map[queue.ID]queue.State{
			dead: queue.Dead, paused: queue.Paused,
			submit(t, q, "unknown", queue.Options{}):                          queue.Waiting,
			submit(t, q, "k", queue.Options{After: []queue.ID{dead}}):         queue.Held,
			submit(t, q, "k", queue.Options{Queue: "closed"}):                 queue.Held,
			submit(t, q, "k", queue.Options{Key: "ann", Queue: "done"}):       queue.Succeeded,
			submit(t, q, "k", queue.Options{Key: "ann", RunAt: time.Now()}):   queue.Succeeded,
			submit(t, q, "k", queue.Options{Unique: "u", Tier: stint.Lowest}): queue.Succeeded,
		}
		begun := time.Now()
		queuetest.Drain(t, q)
		for id, state := range want {
			queuetest.Want(t, q, id, state)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %s to find that nothing goes on", took)
		}
	})
}

// damagedStore says of each task that its row cannot be read.
type damagedStore struct{ queue.Store }

func (damagedStore) Explain(context.Context, time.Time, queue.ID) ([]queue.Reason, error) {
	return []queue.Reason{{Reason: stint.Reason{Code: stint.Code(queue.HoldDamaged)}, What: "checksum"}}, nil
}

// Drain does not wait for tasks whose rows cannot be read.
func TestDrain_LeavesDamagedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		q := queuetest.On(t, damagedStore{store}, queue.Config{})
		queue.Kind[any]("k").Handle(q, nothing)
		if err := q.PauseQueue(t.Context(), "default", queue.Pause{}); err != nil {
			t.Fatal(err)
		}
		id := submit(t, q, "k", queue.Options{})
		queuetest.Drain(t, q)
		queuetest.Want(t, q, id, queue.Held)
	})
}

// Drain waits for rates.
func TestDrain_Rates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{})
		queue.Kind[any]("k").Handle(q, nothing)
		minutely := queue.Rate{PerSecond: 1. / 60}
		for name, s := range map[string]queue.Settings{"rate": {Rate: minutely}, "key": {KeyRate: minutely}} {
			if err := q.Configure(t.Context(), name, s); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				submit(t, q, "k", queue.Options{Queue: name, Key: "ann"})
			}
		}
		begun := time.Now()
		queuetest.Drain(t, q)
		if left := queuetest.All(t, q, queue.Filter{States: []queue.State{queue.Waiting, queue.Held}}); len(left) > 0 {
			t.Errorf("%d tasks are left", len(left))
		}
		if took := time.Since(begun); took < 4*time.Minute || took > 5*time.Minute {
			t.Errorf("it took %s, want 4 minutes", took)
		}
	})
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{Retry: retry.Policy{Base: time.Minute}})
		queue.Kind[any]("k").Handle(q, func(_ context.Context, j *queue.Job[any]) error {
			time.Sleep(time.Second)
			if j.Failures == 0 {
				return errTest
			}
			return nil
		})
		stop := queuetest.Start(t, q, 2, "a")
		id := submit(t, q, "k", queue.Options{Queue: "a"})
		queuetest.Sleep(0)
		queuetest.Want(t, q, id, queue.Running)
		queuetest.Sleep(time.Second)
		queuetest.Want(t, q, id, queue.Scheduled)
		queuetest.Sleep(time.Minute)
		queuetest.Want(t, q, id, queue.Running)
		stop() // waits for it
		queuetest.Want(t, q, id, queue.Succeeded)
	})
}

func TestWork(t *testing.T) {
	type args struct{ N int }
	for name, c := range map[string]struct {
		handle func(context.Context, *queue.Job[args]) error
		want   queue.State
		holds  func(*queue.Task) bool
	}{
		"success": {
			func(_ context.Context, j *queue.Job[args]) error { return j.Return(j.Args.N + 1) },
			queue.Succeeded,
			func(task *queue.Task) bool { return string(task.Result) == "8" },
		},
		"failure": {
			func(_ context.Context, j *queue.Job[args]) error {
				j.Save(append(j.Checkpoint, " more"...))
				return errTest
			},
			queue.Scheduled,
			func(task *queue.Task) bool {
				return task.Failures == 1 && task.Error == errTest.Error() && string(task.Checkpoint) == "some more"
			},
		},
		"permanent": {
			func(context.Context, *queue.Job[args]) error { return retry.Permanent(errTest) },
			queue.Dead,
			func(task *queue.Task) bool { return task.Failures == 1 },
		},
		"snooze": {
			func(context.Context, *queue.Job[args]) error { return queue.Snooze(time.Hour) },
			queue.Scheduled,
			func(task *queue.Task) bool { return task.Failures == 0 },
		},
		"snooze for no time": {
			func(context.Context, *queue.Job[args]) error { return queue.Snooze(0) },
			queue.Waiting,
			func(task *queue.Task) bool { return task.Key == "ann" },
		},
		"panic": {
			func(context.Context, *queue.Job[args]) error { panic("oh") },
			queue.Scheduled,
			func(task *queue.Task) bool { return strings.HasPrefix(task.Error, "panic: oh") },
		},
		"goexit": {
			func(context.Context, *queue.Job[args]) error { runtime.Goexit(); return nil },
			queue.Scheduled,
			func(task *queue.Task) bool { return strings.Contains(task.Error, "Goexit") },
		},
		"timeout": {
			func(ctx context.Context, _ *queue.Job[args]) error { <-ctx.Done(); return ctx.Err() },
			queue.Scheduled,
			func(task *queue.Task) bool { return strings.Contains(task.Error, "deadline") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			given := queuetest.Given{
				Kind: "k", Options: queue.Options{Queue: "q", Key: "ann", Timeout: time.Millisecond}, Checkpoint: []byte("some"),
			}
			task := queuetest.Work(t, func(ctx context.Context, j *queue.Job[args]) error {
				calls++
				return c.handle(ctx, j)
			}, args{7}, given)
			if task.State != c.want || !c.holds(&task) || calls != 1 {
				t.Errorf("%d calls, error %q, checkpoint %q\n%s", calls, task.Error, task.Checkpoint, queuetest.Life(&task))
			}
		})
	}
}

// A Run whose context has ended starts nothing more, also before its dispatcher has seen the
// end: a task that waits again is not attempted a second time.
func TestWork_OneAttempt(t *testing.T) {
	for range 1000 {
		calls := 0
		queuetest.Work(t, func(context.Context, *queue.Job[int]) error {
			calls++
			return queue.Snooze(0)
		}, 1, queuetest.Given{})
		if calls != 1 {
			t.Fatalf("there were %d attempts", calls)
		}
	}
}

// Options with which a task would have to wait end the test: Work makes the attempt at once.
func TestWork_RefusesOptionsThatWait(t *testing.T) {
	for name, o := range map[string]queue.Options{
		"RunAt":      {RunAt: time.Now()},
		"After":      {After: []queue.ID{{1}}},
		"AfterAny":   {AfterAny: []queue.ID{{1}}},
		"AfterBatch": {AfterBatch: queue.ID{1}},
	} {
		f := &failing{TB: t, ctx: t.Context()}
		func() {
			defer func() {
				if recover() != any(f) || !strings.Contains(f.said, "unset RunAt") {
					t.Errorf("%s: the test says %q", name, f.said)
				}
			}()
			queuetest.Work(f, func(context.Context, *queue.Job[int]) error { return nil }, 1, queuetest.Given{Options: o})
		}()
	}
}

// The same test has the same IDs and the same delays each time.
func TestNew_IsDeterministic(t *testing.T) {
	run := func() (lives []string) {
		synctest.Test(t, func(t *testing.T) {
			q := queuetest.New(t, queue.Config{})
			queue.Kind[any]("k").Handle(q, func(context.Context, *queue.Job[any]) error { return errTest })
			for range 10 {
				submit(t, q, "k", queue.Options{})
			}
			queuetest.Drain(t, q)
			for _, task := range queuetest.All(t, q, queue.Filter{}) {
				lives = append(lives, queuetest.Life(&task))
			}
		})
		return lives
	}
	first, second := run(), run()
	if !slices.Equal(first, second) {
		t.Errorf("once:\n%s\nthe other time:\n%s", first, second)
	}
}

// failing is a testing.TB that records a failure and ends the goroutine.
type failing struct {
	testing.TB
	ctx  context.Context //nolint:containedctx // stands for the test's
	said string
}

func (f *failing) Context() context.Context { return f.ctx }

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, _ ...any) {
	f.said = format
	panic(f)
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]func(*failing, *queue.Queue, queue.ID){
		"want one":         func(f *failing, q *queue.Queue, _ queue.ID) { queuetest.Only(f, q, queue.Filter{Key: "x"}) },
		"want a task that": func(f *failing, q *queue.Queue, id queue.ID) { queuetest.Want(f, q, id, queue.Dead) },
		"find tasks":       func(f *failing, q *queue.Queue, _ queue.ID) { queuetest.All(f, q, queue.Filter{}) },
		"come to rest": func(f *failing, q *queue.Queue, _ queue.ID) {
			queue.Kind[any]("k").Handle(q, func(ctx context.Context, _ *queue.Job[any]) error { <-ctx.Done(); return nil })
			queuetest.Drain(f, q)
		},
		"not done": func(f *failing, q *queue.Queue, _ queue.ID) {
			queue.Kind[any]("k").Handle(q, func(context.Context, *queue.Job[any]) error { return queue.Snooze(24 * time.Hour) })
			queuetest.Drain(f, q)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow := queue.Config{Poll: time.Hour, Lease: 10 * time.Hour}
			q := queuetest.New(t, slow, func(_ context.Context, call string, do func() error) error {
				if call == "Find" && strings.Contains(name, "find") {
					return queuetest.ErrFault
				}
				return do()
			})
			id := submit(t, q, "k", queue.Options{})
			f := &failing{TB: t, ctx: t.Context()}
			defer func() {
				if recover() != any(f) || !strings.Contains(f.said, name) {
					t.Errorf("%s: the test says %q", name, f.said)
				}
			}()
			c(f, q, id)
		})
	}
}
