package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

func faultCases() []testCase {
	return []testCase{{"C6_FaultsAtAnyWrite", Config{}, faultsAtAnyWrite}}
}

// faultsAtAnyWrite repeats a round of calls. The n-th write fails in round n, until a
// round completes without a failure. The call that fails must return
// [queue.ErrUnavailable]; when the store is reopened, the same call must succeed, and at
// the end each task has run as if there had been no failure.
func faultsAtAnyWrite(c *trial) {
	if c.Durable != (c.Break != nil) {
		c.Fatalf("the harness has Durable %t, but a Break: %t", c.Durable, c.Break != nil)
	}
	if !c.Durable {
		c.Log("the store is not durable")
		return
	}
	for n := 1; ; n++ {
		r := &round{trial: c, queue: fmt.Sprint("round-", n)}
		c.Break(n)
		r.play()
		c.Break(0)
		c.Store = c.Reopen(c.T) // a write in the background may have failed as well
		if r.verify(); !r.failed {
			c.Logf("a round has %d writes", n-1)
			return
		}
	}
}

// round is a fixed sequence of calls for three tasks in a queue of their own, with at
// most one failure of the store.
type round struct {
	*trial
	queue  string
	tasks  []queue.NewTask // a unique task, its successor, and one that fails
	failed bool
}

func (r *round) play() {
	options := queue.Options{Queue: r.queue, MaxCrashes: 100}
	first, second, third := r.fresh(options), r.fresh(options), r.fresh(options)
	first.Unique, first.Batch, second.After, third.MaxAttempts = "u", r.ids.New(r.now), []queue.ID{first.ID}, 2
	r.tasks = []queue.NewTask{first, second, third}
	r.accept(r.tasks...)

	again := r.fresh(queue.Options{Queue: r.queue, Unique: "u"})
	if receipts := r.accept(again); receipts[0] != (queue.Receipt{ID: first.ID, Existing: true}) {
		r.Fatalf("the receipt of a task that exists is %+v", receipts[0])
	}
	r.order(queue.OrderPause, queue.Paused, second.ID, third.ID)
	r.work(queue.Outcome{ID: first.ID, Kind: queue.OutcomeSuccess, Result: []byte("result")}, queue.Succeeded)
	r.order(queue.OrderResume, queue.Waiting, second.ID)
	r.call("Configure", func() error {
		return r.Store.Configure(r.Context(), r.now, r.queue, queue.Change{Set: queue.Settings{Max: 1}})
	})
	for _, p := range []*queue.Pause{{By: operator}, nil} {
		r.call("PauseQueue", func() error { return r.Store.PauseQueue(r.Context(), r.now, r.queue, p) })
	}
	r.work(queue.Outcome{ID: second.ID, Kind: queue.OutcomeSnooze, RunAt: r.now.Add(time.Hour)}, queue.Scheduled)
	r.order(queue.OrderResume, queue.Waiting, third.ID)
	r.work(queue.Outcome{ID: third.ID, Kind: queue.OutcomeFailure, Error: "no"}, queue.Waiting)
	r.work(queue.Outcome{ID: third.ID, Kind: queue.OutcomeFailure, Error: "no"}, queue.Dead)
	r.order(queue.OrderRetry, queue.Waiting, third.ID)
	r.order(queue.OrderCancel, queue.Cancelled, third.ID)
	r.order(queue.OrderRetry, queue.Waiting, second.ID)
	r.work(queue.Outcome{ID: second.ID, Kind: queue.OutcomeSuccess, Checkpoint: []byte("there")}, queue.Succeeded)
	r.tick()
}

// tick makes a schedule and submits the task of its first tick.
func (r *round) tick() {
	r.Helper()
	s := r.hourly(r.queue)
	after, task := r.nextTick(s)
	task.Queue = "ticks of " + r.queue
	for _, change := range []queue.Reschedule{
		{Name: s.Name, To: &s},
		{Name: s.Name, Was: s.Version, To: &after, Tasks: []queue.NewTask{task}},
	} {
		r.call("Reschedule", func() error { return r.Store.Reschedule(r.Context(), r.now, change) })
	}
}

// call makes a call. If it fails, call reopens the store and repeats it.
func (r *round) call(what string, fn func() error) {
	r.Helper()
	err := fn()
	if errors.Is(err, queue.ErrUnavailable) && !r.failed {
		r.failed = true
		r.Break(0)
		r.Store = r.Reopen(r.T)
		err = fn()
	}
	r.ok(what, err)
}

func (r *round) accept(tasks ...queue.NewTask) (receipts []queue.Receipt) {
	r.Helper()
	r.call("Submit", func() (err error) {
		receipts, err = r.Store.Submit(r.Context(), r.now, tasks)
		return err
	})
	return receipts
}

func (r *round) order(do queue.Order, want queue.State, ids ...queue.ID) {
	r.Helper()
	r.call("Command", func() error {
		_, err := r.Store.Command(r.Context(), r.now, queue.Command{Do: do, Filter: queue.Filter{IDs: ids}})
		return err
	})
	r.is(want, ids...)
}

// work claims the next task, sends a heartbeat, and settles it. If a failure ends the
// lease, work tries again.
func (r *round) work(o queue.Outcome, want queue.State) {
	r.Helper()
	const enough = 5
	for tries := 0; !r.step(&o); tries++ {
		if t := r.task(o.ID); tries == enough || t.State.Finished() {
			r.Fatalf("the task cannot be settled\n%s", life(t))
		}
		r.pass(2 * lease)
		r.call("Maintain", func() error {
			_, err := r.Store.Maintain(r.Context(), r.now, 0)
			return err
		})
	}
	r.is(want, o.ID)
}

// step is one attempt of work. It reports whether the store accepted the outcome.
func (r *round) step(o *queue.Outcome) (taken bool) {
	r.Helper()
	o.Token = 0
	r.call("Claim", func() error {
		claim := queue.Claim{Worker: worker, Queue: r.queue, Kinds: []string{kind}, Max: 1, Lease: lease}
		claimed, err := r.Store.Claim(r.Context(), r.now, claim)
		for _, t := range claimed.Tasks {
			if t.ID != o.ID {
				r.Fatalf("task %s starts, want %s", t.ID, o.ID)
			}
			o.Token = t.Lease.Token
		}
		return err
	})
	if o.Token == 0 {
		return false // the claim failed after the store had made the lease
	}
	r.call("Heartbeat", func() error {
		b := []queue.Heartbeat{{ID: o.ID, Token: o.Token, Lease: lease, Checkpoint: []byte("here")}}
		_, err := r.Store.Heartbeat(r.Context(), r.now, queue.Worker{Name: worker}, b)
		return err
	})
	r.call("Settle", func() error {
		answers, err := r.Store.Settle(r.Context(), r.now, []queue.Outcome{*o})
		if err == nil && errors.Is(answers[0], queue.ErrStale) && r.failed {
			taken = false // the lease ended with the store
			return nil
		}
		taken = true
		return errors.Join(append(answers, err)...)
	})
	return taken
}

// verify checks that each task has ended as it should, with each outcome applied once.
func (r *round) verify() {
	r.Helper()
	for i, want := range []struct {
		state              queue.State
		succeeds, fails    int
		result, checkpoint string
	}{
		{queue.Succeeded, 1, 0, "result", "here"},
		{queue.Succeeded, 1, 0, "", "there"},
		{queue.Cancelled, 0, 2, "", "here"},
	} {
		t := r.task(r.tasks[i].ID)
		if t.State != want.state || times(&t, queue.OnSuccess) != want.succeeds || times(&t, queue.OnFailure) != want.fails ||
			string(t.Result) != want.result || string(t.Checkpoint) != want.checkpoint {
			r.Fatalf("task %d ends with the result %q and the checkpoint %q; want %+v\n%s",
				i, t.Result, t.Checkpoint, want, life(t))
		}
	}
	s := r.schedule(r.queue)
	if ticks := r.find(queue.Filter{Queue: "ticks of " + r.queue}); len(ticks) != 1 || ticks[0].ID != s.Last.Task {
		r.Fatalf("the schedule is %+v after one tick, and the tasks are %v", s, idsOf(ticks))
	}
	if all := r.find(queue.Filter{Queue: r.queue}); len(all) != len(r.tasks) {
		r.Fatalf("there are %[2]d tasks, want %[1]d", len(r.tasks), len(all))
	}
}

// times counts the steps of a task with this trigger.
func times(t *queue.Task, on queue.Trigger) (n int) {
	for _, s := range t.Steps {
		if s.On == on {
			n++
		}
	}
	return n
}
