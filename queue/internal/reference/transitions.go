package reference

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// transitions moves tasks from state to state, counts the ends, and raises the events.
type transitions struct {
	*Rules
	order    *order
	total    *reservations
	watchers *watchers
	ended    map[string]*queue.Ended // by queue
	endings  uint64                  // tasks that have finished
}

// endedOf returns the counts of a queue, which its first task creates.
func (tr *transitions) endedOf(name string) *queue.Ended {
	e := tr.ended[name]
	if e == nil {
		e = &queue.Ended{}
		tr.ended[name] = e
	}
	return e
}

// step makes a transition. All transitions are made here, so one that the table does not
// have ends the test.
func (tr *transitions) step(now time.Time, t *Task, to queue.State, s queue.Step) {
	from := t.State
	if !queue.Allowed(from, s.On, to) {
		panic(fmt.Sprintf("reference: %s of a task that is %s does not make it %s", s.On, from, to))
	}
	s.At, s.To = now, to
	t.Record(s)
	if to.Finished() {
		tr.endings++
		t.ended = tr.endings
	}
	tr.count(t.Queue, s)
	tr.watchers.send(queue.Event{ID: t.ID, Queue: t.Queue, Kind: t.Kind, From: from, Step: s})
}

func (tr *transitions) count(name string, s queue.Step) {
	ended := tr.endedOf(name)
	switch s.On {
	case queue.OnFailure:
		ended.Failed++
	case queue.OnLost:
		ended.Lost++
	default:
	}
	switch s.To {
	case queue.Succeeded:
		ended.Succeeded++
	case queue.Dead:
		ended.Dead++
	case queue.Cancelled:
		ended.Cancelled++
	default:
	}
}

// revise holds tasks that have to wait for others, and releases those that no longer do.
func (tr *transitions) revise(now time.Time) {
	for _, t := range tr.Tasks.all {
		held := len(tr.Before.Waits(t)) > 0
		switch {
		case t.State == queue.Held && !held:
			tr.step(now, t, queue.Waiting, queue.Step{On: queue.OnUnhold})
		case t.State == queue.Waiting && held:
			tr.step(now, t, queue.Held, queue.Step{On: queue.OnHold})
		}
	}
}

// pending makes a transition to the state of a task that is to start as soon as it may.
func (tr *transitions) pending(now time.Time, t *Task, s queue.Step) {
	tr.step(now, t, tr.Before.Pending(now, t), s)
}

// submit accepts the tasks of a call, all or none.
func (tr *transitions) submit(now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	receipts, fresh, err := tr.Submissions.Receive(now, tasks)
	if err != nil {
		return nil, err
	}
	tr.Tasks.Add(fresh...)
	for _, t := range fresh {
		var s queue.Step
		s, t.Error = tr.Submissions.First(now, t)
		tr.step(now, t, s.To, s)
	}
	tr.revise(now)
	return receipts, nil
}

// start leases a task to the worker of a claim.
func (tr *transitions) start(now time.Time, t *Task, c queue.Claim, token queue.Token) {
	tr.total.end(t.Queue)
	tr.step(now, t, queue.Running, queue.Step{On: queue.OnClaim, By: c.Worker, Token: token})
	t.Grant(now, c, token)
	tr.order.started(t)
	tr.Rates.Spend(now, t)
}

// settle ends a lease with an outcome.
func (tr *transitions) settle(now time.Time, t *Task, o *queue.Outcome) {
	s := queue.Step{On: o.Kind.Trigger(), By: t.Lease.Worker, Token: o.Token}
	switch to := t.Settle(o); {
	case o.Kind == queue.OutcomeFailure:
		s.Detail = o.Error
		if to == queue.Dead {
			tr.step(now, t, to, s)
			return
		}
		tr.again(now, t, to, s)
	case to == queue.Scheduled:
		tr.again(now, t, to, s)
	case to == 0:
		s.Detail = o.Error
		tr.release(now, t, s)
	default:
		tr.step(now, t, to, s)
	}
}

// release ends a lease without success or failure: the task's order takes effect, or
// it waits for its next attempt.
func (tr *transitions) release(now time.Time, t *Task, s queue.Step) {
	on, to := t.Release()
	if to == 0 {
		tr.pending(now, t, s)
		return
	}
	tr.step(now, t, to, queue.Step{On: on, By: t.orderBy, Token: s.Token, Detail: t.orderWhy})
}

// again makes a task wait for its next attempt, unless the order of its worker takes
// effect.
func (tr *transitions) again(now time.Time, t *Task, to queue.State, s queue.Step) {
	on, ordered := t.Release()
	tr.step(now, t, to, s)
	switch {
	case ordered != 0:
		tr.step(now, t, ordered, queue.Step{On: on, By: t.orderBy, Detail: t.orderWhy})
	case to == queue.Scheduled && !t.RunAt.After(now):
		tr.pending(now, t, queue.Step{On: queue.OnDue})
	}
}

// lose ends a lease that ran out.
func (tr *transitions) lose(now time.Time, t *Task) {
	s := queue.Step{On: queue.OnLost, By: t.Lease.Worker, Token: t.Lease.Token}
	if !t.Lose() {
		tr.again(now, t, tr.Before.Pending(now, t), s)
		return
	}
	t.Error = fmt.Sprintf("lost its worker %d times in a row", t.Crashes)
	s.Detail = t.Error
	tr.step(now, t, queue.Dead, s)
}

// expire ends a task whose deadline has come before it started.
func (tr *transitions) expire(now time.Time, t *Task) {
	t.Error = "its deadline came before it started"
	tr.step(now, t, queue.Dead, queue.Step{On: queue.OnExpire, Detail: t.Error})
}

// forget removes a finished task. Tasks that wait for its success are cancelled, because
// it can no longer succeed.
func (tr *transitions) forget(now time.Time, t *Task, s queue.Step, retention bool) {
	tr.Tasks.Forget(t, retention)
	s.At = now
	tr.watchers.send(queue.Event{ID: t.ID, Queue: t.Queue, Kind: t.Kind, From: t.State, Step: s})
	if t.State != queue.Succeeded {
		tr.orphan(now, t, s.By, "was forgotten")
	}
}

// orphan cancels the tasks that come after one that will not succeed, and the tasks that
// come after those.
func (tr *transitions) orphan(now time.Time, t *Task, by, why string) {
	for _, other := range tr.Tasks.all {
		if other.State.Pending() && t.Seq < other.Seq && slices.Contains(other.After, t.ID) {
			tr.step(now, other, queue.Cancelled, queue.Step{
				On: queue.OnCancel, By: by, Detail: fmt.Sprintf("task %s, which has to succeed first, %s", t.ID, why),
			})
			tr.orphan(now, other, by, "was cancelled with the task before it")
		}
	}
}
