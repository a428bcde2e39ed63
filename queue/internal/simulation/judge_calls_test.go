package simulation_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
)

// ask looks at what a call asks, before its events.
func (j *judge) ask(c *call) {
	switch c.name {
	case "Command":
		if c.err == nil || c.flaw != sound {
			j.giveOrders(c)
		}
	case "Settle":
		j.reported(c)
	case "Reschedule":
		if r := c.args.(queue.Reschedule); errors.Is(c.err, queue.ErrFull) {
			j.noRoom(&r)
		}
	case "Find":
		for _, id := range c.args.([]queue.ID) {
			c.who.lookedUp(c, id)
		}
	default:
	}
}

// answer looks at what a call was answered, after its events.
func (j *judge) answer(c *call) {
	switch c.name {
	case "Submit":
		j.submitted(c)
	case "Claim":
		j.claimed(c)
	case "Settle":
		j.settled(c)
	case "Heartbeat":
		j.beaten(c)
	case "Schedules":
		if !j.w.ill { // it may show what the disk does not have
			j.listed(c.answer.([]queue.ScheduleState))
		}
	case "Find":
		j.lookedUp(c)
	default:
	}
}

// obey takes into the account what a call changes without an event.
func (j *judge) obey(c *call) {
	switch c.name {
	case "Configure":
		s := c.args.(setting)
		now := j.settings[s.queue] // all are programs
		for _, f := range s.change.Set.Fields() {
			now.Copy(f, &s.change.Set)
		}
		for _, f := range s.change.Unset {
			now.Copy(f, &queue.Settings{})
		}
		j.configured(s.queue, now)
	case "PauseQueue":
		s := c.args.(pausing)
		now := j.settings[s.queue]
		now.Paused = s.pause
		j.configured(s.queue, now)
	case "Reschedule":
		j.rescheduled(c)
	case "Heartbeat":
		for _, b := range c.args.([]queue.Heartbeat) {
			j.extend(&b)
		}
	default:
	}
	for _, l := range j.order {
		if l.order != 0 && !l.running() {
			if l.unfinished() {
				j.broken(l, "it was told to %s, and is %s", l.order, l.state)
			}
			l.order = 0
		}
	}
}

// submitted compares receipts.
func (j *judge) submitted(c *call) {
	tasks, receipts := c.args.([]queue.NewTask), c.answer.([]queue.Receipt)
	for i := range tasks {
		l := j.lives[tasks[i].ID]
		if receipts[i] == (queue.Receipt{ID: tasks[i].ID}) && l != nil {
			continue
		}
		first := j.unique(&tasks[i])
		if l != nil && !l.forgotten || first == nil || receipts[i] != (queue.Receipt{ID: first.ID, Existing: true}) {
			j.broken(l, "its receipt is %+v; the first with its Unique is %v", receipts[i], first)
		}
	}
}

// unique returns the task that is remembered with the Unique of another.
func (j *judge) unique(t *queue.NewTask) *life {
	for _, l := range j.order {
		if t.Unique != "" && l.Unique == t.Unique && l.Queue == t.Queue && (!l.forgotten || l.unique.After(j.clock)) {
			return l
		}
	}
	return nil
}

// full reports whether a queue has no room for tasks.
func (j *judge) full(tasks []queue.NewTask) bool {
	limit, n := j.of(tasks[0].Queue).Pending, len(tasks)
	for _, l := range j.order {
		if l.Queue == tasks[0].Queue && l.unfinished() {
			n++
		}
	}
	return limit > 0 && n > limit
}

// refers reports whether tasks refer to one that is not there.
func (j *judge) refers(tasks []queue.NewTask) bool {
	for i := range tasks {
		for _, id := range slices.Concat(tasks[i].After, tasks[i].AfterAny) {
			if l := j.lives[id]; l == nil || l.forgotten {
				return true
			}
		}
	}
	return false
}

// claimed compares the tasks that were handed out with those that were claimed.
func (j *judge) claimed(c *call) {
	q, answer := c.args.(queue.Claim), c.answer.(queue.Claimed)
	if len(answer.Tasks) > q.Max {
		j.broken(nil, "%d tasks for a claim of %d", len(answer.Tasks), q.Max)
	}
	for i := range answer.Tasks {
		t := &answer.Tasks[i]
		l := j.lives[t.ID]
		if l == nil || !l.live(t.Lease.Token) || l.worker != q.Worker {
			j.broken(l, "it was handed out to %s with the token %d", q.Worker, t.Lease.Token)
			continue
		}
		if t.Failures != l.failures || t.Crashes != l.crashes || string(t.Checkpoint) != string(l.checkpoint) {
			j.broken(l, "it was handed out with %d failures, %d crashes and the checkpoint %q; it has %d, %d and %q",
				t.Failures, t.Crashes, t.Checkpoint, l.failures, l.crashes, l.checkpoint)
		}
		j.attempts[leaseOf{t.ID, t.Lease.Token}] = &attempt{
			n: c.who, lost: c.lost, at: c.sent, until: c.sent.Add(q.Lease),
		}
	}
}

// settled compares the answers to outcomes. The events have been taken into the
// account already.
func (j *judge) settled(c *call) {
	outcomes, answers := c.args.([]queue.Outcome), c.answer.([]error)
	for i := range outcomes {
		o := &outcomes[i]
		l := j.lives[o.ID]
		var want error
		if l == nil || l.forgotten || l.ended[o.Token] != o.Kind.Trigger() {
			want = queue.ErrStale
		}
		if !errors.Is(answers[i], want) {
			j.broken(l, "%s with the token %d is answered %v; want %v", o.Kind, o.Token, answers[i], want)
		}
		if l != nil && l.live(o.Token) {
			j.broken(l, "its lease lives, though it was settled: %v", answers[i])
		}
	}
}

// extend takes a sign of life into the account.
func (j *judge) extend(b *queue.Heartbeat) {
	l := j.lives[b.ID]
	if l == nil || !l.live(b.Token) {
		return
	}
	if until := j.clock.Add(b.Lease); until.After(l.until) {
		l.until = until
	}
	if b.Checkpoint != nil {
		l.checkpoint = b.Checkpoint
	}
}

// beaten compares what signs of life are answered.
func (j *judge) beaten(c *call) {
	heartbeats, answers := c.args.([]queue.Heartbeat), c.answer.([]queue.Answer)
	for i := range heartbeats {
		b := &heartbeats[i]
		l := j.lives[b.ID]
		want := queue.StopLost
		if l != nil && l.live(b.Token) {
			want = queue.StopReason(l.order)
		}
		if answers[i].Stop != want {
			j.broken(l, "the worker with the token %d is told %q; want %q", b.Token, answers[i].Stop, want)
		}
		if a := j.attempts[leaseOf{b.ID, b.Token}]; a != nil && want == 0 && !c.lost {
			a.until = c.sent.Add(b.Lease)
		}
	}
}

// giveOrders has the account obey a command as to running tasks, which raise no
// event; the others are compared by their number.
func (j *judge) giveOrders(c *call) {
	q := c.args.(queue.Command)
	for _, l := range j.order {
		if !l.running() || !matches(l, &q.Filter) {
			continue
		}
		switch {
		case q.Do == queue.OrderResume && l.order == queue.OrderPause:
			l.order = 0
		case q.Do == queue.OrderPause && l.order == 0, q.Do == queue.OrderCancel:
			l.order = q.Do
		}
	}
}

// matches reports whether one of the filters that are used here finds a task.
func matches(l *life, f *queue.Filter) bool {
	return !l.forgotten && (f.IDs == nil || slices.Contains(f.IDs, l.ID)) &&
		(f.Queue == "" || f.Queue == l.Queue) && (f.Kind == "" || f.Kind == l.Kind) && (f.Key == "" || f.Key == l.Key) &&
		(len(f.States) == 0 || slices.Contains(f.States, l.state))
}

// explained looks at why a task waits.
func (j *judge) explained(l *life) {
	if j.w.store == nil || j.w.ill || j.lives[l.ID] != l { // or it was submitted anew, when it had been forgotten
		return
	}
	why, err := j.w.store.Explain(j.w.ctx, j.clock, l.ID)
	switch {
	case l.forgotten:
		if !errors.Is(err, queue.ErrNotFound) {
			j.broken(l, "it is explained though it is forgotten: %v", err)
		}
	case err != nil || (len(why) > 0) != l.state.Pending():
		j.broken(l, "it is %s, for the reasons %+v, %v", l.state, why, err)
	}
	codes := make([]string, len(why))
	for i := range why {
		codes[i] = fmt.Sprint(why[i].Code)
	}
	j.w.log("%s is %s: %v", l, l.state, codes)
}
