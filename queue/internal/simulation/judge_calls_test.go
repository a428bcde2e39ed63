package simulation_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
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
		s.change.Version = 0 // the store has compared it
		if _, err := j.rules.Configure(j.clock, s.queue, s.change); err != nil {
			j.broken(nil, "the settings of queue %q: %v", s.queue, err)
		}
	case "PauseQueue":
		s := c.args.(pausing)
		j.rules.Settings.Pause(j.clock, s.queue, s.pause)
	case "Reschedule":
		j.rescheduled(c)
	case "Heartbeat":
		for _, b := range c.args.([]queue.Heartbeat) {
			j.extend(&b)
		}
	default:
	}
	for _, l := range j.order {
		if l.obeys != 0 {
			if l.unfinished() {
				j.broken(l, "it was told to %s, and is %s", l.obeys, l.State)
			}
			l.obeys = 0
		}
	}
}

// receive applies the rules to the tasks that a call submits, and adds those that it
// accepts. A call that met a flaw of the disk has accepted them if there are events.
func (j *judge) receive(c *call, events []queue.Event) {
	j.receipts, j.fresh, j.refusal = nil, nil, nil
	tasks := c.tasks()
	if r, ok := c.args.(queue.Reschedule); ok {
		if changes, _ := j.reschedules(&r); !changes {
			return
		}
	}
	if len(tasks) == 0 {
		return
	}
	j.receipts, j.fresh, j.refusal = j.rules.Submissions.Receive(j.clock, tasks)
	accepts := func(e queue.Event) bool { return e.On == queue.OnSubmit }
	if c.err != nil && !slices.ContainsFunc(events, accepts) {
		j.fresh = nil
	}
	j.rules.Tasks.Add(j.fresh...)
}

// submitted compares receipts.
func (j *judge) submitted(c *call) {
	if got := c.answer.([]queue.Receipt); !slices.Equal(got, j.receipts) {
		j.broken(nil, "the receipts are %+v; want %+v, %v", got, j.receipts, j.refusal)
	}
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
		if l == nil || !l.live(t.Lease.Token) || l.Lease.Worker != q.Worker {
			j.broken(l, "it was handed out to %s with the token %d", q.Worker, t.Lease.Token)
			continue
		}
		if t.Failures != l.Failures || t.Crashes != l.Crashes || string(t.Checkpoint) != string(l.Checkpoint) {
			j.broken(l, "it was handed out with %d failures, %d crashes and the checkpoint %q; it has %d, %d and %q",
				t.Failures, t.Crashes, t.Checkpoint, l.Failures, l.Crashes, l.Checkpoint)
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
	if l != nil && l.live(b.Token) {
		l.Extend(j.clock, b)
	}
}

// beaten compares what signs of life are answered.
func (j *judge) beaten(c *call) {
	heartbeats, answers := c.args.([]queue.Heartbeat), c.answer.([]queue.Answer)
	for i := range heartbeats {
		b := &heartbeats[i]
		l := j.lives[b.ID]
		want := queue.Answer{Stop: queue.StopLost}
		if l != nil && l.live(b.Token) {
			want = l.Answer()
		}
		if answers[i] != want {
			j.broken(l, "the worker with the token %d is answered %+v; want %+v", b.Token, answers[i], want)
		}
		if a := j.attempts[leaseOf{b.ID, b.Token}]; a != nil && want.Stop == 0 && !c.lost {
			a.until = c.sent.Add(b.Lease)
		}
	}
}

// giveOrders has the account obey a command as to running tasks, which raise no
// event; the others are compared by their number.
func (j *judge) giveOrders(c *call) {
	q := c.args.(queue.Command)
	for _, l := range j.order {
		if l.running() && reference.Matches(&q.Filter, &l.Task.Task) {
			l.Obey(&q)
		}
	}
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
	case err != nil || (len(why) > 0) != l.State.Pending():
		j.broken(l, "it is %s, for the reasons %+v, %v", l.State, why, err)
	}
	codes := make([]string, len(why))
	for i := range why {
		codes[i] = fmt.Sprint(why[i].Code)
	}
	j.w.log("%s is %s: %v", l, l.State, codes)
}
