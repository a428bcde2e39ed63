package reference

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Attempts is how often a task may fail, or crash its worker, if it sets no limit.
const Attempts = 3

// Task is a task and what its transitions depend on. Its State is the recorded one: a
// task that is held only by limits is Waiting here. Its methods apply the rules that
// concern one task alone; they do not change its State, which Record does.
type Task struct {
	queue.Task
	Seq uint64 // place in the order of submission, from 1

	ended             uint64        // place in the order of finishing
	orderBy, orderWhy string        // author and reason of Order
	remote            time.Duration // length of a lease that outlives the store; 0 is a lease that does not

	runAtEdited, deadlineEdited time.Time // times of the last edits of RunAt and Deadline
}

// newTask returns a task that shares no memory with the caller's.
func newTask(now time.Time, n *queue.NewTask, seq uint64) *Task {
	t := &Task{Task: queue.Task{ID: n.ID, Spec: n.Spec, Submitted: now}, Seq: seq}
	t.Queue = orDefault(t.Queue)
	t.Payload, t.Labels = slices.Clone(n.Payload), maps.Clone(n.Labels)
	t.After, t.AfterAny = slices.Clone(n.After), slices.Clone(n.AfterAny)
	return t
}

func orDefault(name string) string { return cmp.Or(name, queue.DefaultQueue) }

// Clone returns a copy that can go through transitions of its own.
func (t *Task) Clone() *Task {
	own := *t
	own.Steps = slices.Clone(t.Steps)
	return &own
}

// Suspected reports whether the task has crashed, and the next crash makes it dead.
func (t *Task) Suspected() bool {
	return t.Crashes > 0 && t.Crashes+1 == cmp.Or(t.MaxCrashes, Attempts)
}

// Late reports whether the task's deadline has come.
func (t *Task) Late(now time.Time) bool { return !t.Deadline.IsZero() && !t.Deadline.After(now) }

// Leased reports whether a token is that of the task's lease.
func (t *Task) Leased(token queue.Token) bool {
	return t.State == queue.Running && t.Lease.Token == token
}

// Poisonous reports whether the task is dead because it crashed its workers.
func (t *Task) Poisonous() bool {
	return t.State == queue.Dead && t.Steps[len(t.Steps)-1].On == queue.OnLost
}

// uniqueUntil is the end of the time in which the task's Unique is answered with its ID,
// also when the task has been forgotten.
func (t *Task) uniqueUntil() time.Time { return t.Submitted.Add(t.UniqueFor) }

// Record adds a step, which has its time and its state.
func (t *Task) Record(s queue.Step) {
	t.State, t.Changed = s.To, s.At
	if t.Steps = append(t.Steps, s); len(t.Steps) > queue.MaxSteps {
		t.Steps = slices.Delete(t.Steps, 1, 2)
	}
	if s.To != queue.Running {
		t.Lease, t.Order = queue.Lease{}, 0
	}
}

// Grant gives a task that has started the lease of a claim.
func (t *Task) Grant(now time.Time, c queue.Claim, token queue.Token) {
	t.Lease = queue.Lease{Worker: c.Worker, Token: token, Until: now.Add(c.Lease)}
	t.Progress, t.remote = queue.Progress{}, 0
	if c.Remote {
		t.remote = c.Lease
	}
}

// Renew begins the lease of a running task anew, with the first call after the store was
// opened.
func (t *Task) Renew(now time.Time) { t.Lease.Until = now.Add(t.remote) }

// Extend applies a heartbeat with the token of the task's lease.
func (t *Task) Extend(now time.Time, b *queue.Heartbeat) {
	t.Lease.Until = later(t.Lease.Until, now.Add(b.Lease))
	if b.Progress != (queue.Progress{}) {
		t.Progress = b.Progress
		t.Progress.Note = t.Progress.Note[:min(len(t.Progress.Note), queue.MaxReason)]
	}
	if b.Checkpoint != nil {
		t.Checkpoint = slices.Clone(b.Checkpoint)
	}
}

// Answer returns the answer to a heartbeat with the token of the task's lease.
func (t *Task) Answer() queue.Answer {
	if t.Order == 0 {
		return queue.Answer{}
	}
	return queue.Answer{Stop: queue.StopReason(t.Order), Reason: t.orderWhy}
}

// Obey gives a running task an order for its worker, and reports whether that changes
// anything. A cancel can be neither taken back nor replaced by a pause.
func (t *Task) Obey(c *queue.Command) bool {
	switch {
	case c.Do == queue.OrderPause && t.Order == 0, c.Do == queue.OrderCancel && t.Order != queue.OrderCancel:
		t.Order, t.orderBy, t.orderWhy = c.Do, c.By, c.Reason
		return true
	case c.Do == queue.OrderResume && t.Order == queue.OrderPause:
		t.Order = 0
		return true
	default:
		return false
	}
}

// Settle applies an outcome of the task's attempt, and returns the state that the outcome
// leads to; 0 for a release, which depends on the task's order: see [Task.Release].
func (t *Task) Settle(o *queue.Outcome) (to queue.State) {
	if o.Checkpoint != nil {
		t.Checkpoint = slices.Clone(o.Checkpoint)
	}
	if o.Kind != queue.OutcomeRelease {
		t.Crashes = 0 // the worker has outlived the attempt
	}
	switch o.Kind {
	case queue.OutcomeSuccess:
		t.Result, t.Error = slices.Clone(o.Result), ""
		return queue.Succeeded
	case queue.OutcomeFailure:
		t.Failures++
		t.Error = o.Error
		if o.Permanent || t.Failures >= cmp.Or(t.MaxAttempts, Attempts) {
			return queue.Dead
		}
		t.RunAt = o.RunAt
		return queue.Scheduled
	case queue.OutcomeSnooze:
		t.RunAt = o.RunAt
		return queue.Scheduled
	default:
		return 0
	}
}

// Release returns the trigger and the state that the release of a running task leads to:
// those of its order, or else OnRelease and 0, which stands for [Predecessors.Pending].
func (t *Task) Release() (on queue.Trigger, to queue.State) {
	switch t.Order {
	case queue.OrderPause:
		return t.Order.Trigger(), queue.Paused
	case queue.OrderCancel:
		return t.Order.Trigger(), queue.Cancelled
	default:
		return queue.OnRelease, 0
	}
}

// Lose counts a lease that ran out, and reports whether that makes the task dead.
func (t *Task) Lose() (dead bool) {
	t.Crashes++
	return t.Crashes >= cmp.Or(t.MaxCrashes, Attempts)
}

// Retry lets the task start as soon as it can. A finished task begins anew.
func (t *Task) Retry(now time.Time) {
	t.RunAt = now
	if t.State.Finished() {
		t.Failures, t.Crashes = 0, 0
		if !t.Deadline.After(now) {
			t.Deadline = time.Time{} // or the task would expire at once
		}
	}
}

// Repeated reports whether an outcome repeats the one that ended an earlier lease.
func (t *Task) Repeated(o *queue.Outcome) bool {
	return slices.ContainsFunc(t.Steps, func(s queue.Step) bool {
		obeyed := o.Kind == queue.OutcomeRelease && (s.On == queue.OnPause || s.On == queue.OnCancel)
		return s.Token == o.Token && (s.On == o.Kind.Trigger() || obeyed)
	})
}

// SetBack moves the task's times that are after from back by a distance, but its submission
// not before earliest. RunAt moves with the step or the edit that set it, Deadline with the
// submission or its edit.
func (t *Task) SetBack(from time.Time, back time.Duration, earliest time.Time) {
	corrected := func(at time.Time) time.Time {
		if at.After(from) {
			return at.Add(-back)
		}
		return at
	}
	runAtSet := t.Submitted
	for i := range t.Steps {
		switch s := &t.Steps[i]; s.On {
		case queue.OnFailure, queue.OnSnooze, queue.OnRetry:
			runAtSet = s.At
		default:
		}
	}
	if later(runAtSet, t.runAtEdited).After(from) && !t.RunAt.IsZero() {
		t.RunAt = t.RunAt.Add(-back)
	}
	if later(t.Submitted, t.deadlineEdited).After(from) && !t.Deadline.IsZero() {
		t.Deadline = t.Deadline.Add(-back)
	}
	t.runAtEdited, t.deadlineEdited = corrected(t.runAtEdited), corrected(t.deadlineEdited)
	t.Submitted = later(corrected(t.Submitted), earliest)
	last := t.Submitted
	for i := range t.Steps {
		t.Steps[i].At = later(last, corrected(t.Steps[i].At))
		last = t.Steps[i].At
	}
	t.Changed = last
	if t.State != queue.Scheduled && t.State != queue.Paused && t.RunAt.After(t.Changed) {
		t.RunAt = t.Changed // what was due stays due
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
