package simulation_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// ask checks the arguments of a call, before its events.
func (ch *checker) ask(c *call) {
	switch c.name {
	case "Command":
		if c.err == nil || c.flaw != sound {
			ch.giveOrders(c)
		}
	case "Settle":
		ch.reported(c)
	case "Reschedule":
		if r := c.args.(queue.Reschedule); errors.Is(c.err, queue.ErrFull) {
			ch.noRoom(&r)
		}
	case "Find":
		for _, id := range c.args.([]queue.ID) {
			c.author.lookedUp(c, id)
		}
	default:
	}
}

// answer checks the result of a call, after its events.
func (ch *checker) answer(c *call) {
	switch c.name {
	case "Submit":
		ch.submitted(c)
	case "Claim":
		ch.claimed(c)
	case "Settle":
		ch.settled(c)
	case "Heartbeat":
		ch.heartbeatsAnswered(c)
	case "Schedules":
		if !ch.w.ill { // the answer may show changes that the disk does not have
			ch.listed(c.answer.([]queue.ScheduleState))
		}
	case "Find":
		ch.lookedUp(c)
	default:
	}
}

// obey applies the changes of a call that raise no event.
func (ch *checker) obey(c *call) {
	switch c.name {
	case "Configure":
		s := c.args.(setting)
		s.change.Version = 0 // the store has compared the version
		if _, err := ch.rules.Configure(ch.clock, s.queue, s.change); err != nil {
			ch.broken(nil, "the settings of queue %q: %v", s.queue, err)
		}
	case "PauseQueue":
		s := c.args.(pausing)
		ch.rules.Settings.Pause(ch.clock, s.queue, s.pause)
	case "Reschedule":
		ch.rescheduled(c)
	case "Heartbeat":
		for _, b := range c.args.([]queue.Heartbeat) {
			ch.extend(&b)
		}
	default:
	}
	for _, l := range ch.order {
		if l.obeys != 0 {
			if l.unfinished() {
				ch.broken(l, "it was ordered to %s, but is %s", l.obeys, l.State)
			}
			l.obeys = 0
		}
	}
}

// receive applies the rules to the tasks that a call submits, and adds those that it
// accepts. A call that failed because of a flaw of the disk has accepted them if there
// are events.
func (ch *checker) receive(c *call, events []queue.Event) {
	ch.receipts, ch.fresh, ch.refusal = nil, nil, nil
	tasks := c.tasks()
	if r, ok := c.args.(queue.Reschedule); ok {
		if changes, _ := ch.reschedules(&r); !changes {
			return
		}
	}
	if len(tasks) == 0 {
		return
	}
	ch.receipts, ch.fresh, ch.refusal = ch.rules.Submissions.Receive(ch.clock, tasks)
	accepts := func(e queue.Event) bool { return e.On == queue.OnSubmit }
	if c.err != nil && !slices.ContainsFunc(events, accepts) {
		ch.fresh = nil
	}
	ch.rules.Tasks.Add(ch.fresh...)
}

// submitted checks the receipts of a submit.
func (ch *checker) submitted(c *call) {
	if got := c.answer.([]queue.Receipt); !slices.Equal(got, ch.receipts) {
		ch.broken(nil, "the receipts are %+v; want %+v, %v", got, ch.receipts, ch.refusal)
	}
}

// claimed checks that a claim returned the tasks that its events started.
func (ch *checker) claimed(c *call) {
	q, answer := c.args.(queue.Claim), c.answer.(queue.Claimed)
	if len(answer.Tasks) > q.Max {
		ch.broken(nil, "%d tasks for a claim of %d", len(answer.Tasks), q.Max)
	}
	for i := range answer.Tasks {
		t := &answer.Tasks[i]
		l := ch.lives[t.ID]
		if l == nil || !l.live(t.Lease.Token) || l.Lease.Worker != q.Worker {
			ch.broken(l, "it was handed out to %s with the token %d", q.Worker, t.Lease.Token)
			continue
		}
		if t.Failures != l.Failures || t.Crashes != l.Crashes || string(t.Checkpoint) != string(l.Checkpoint) {
			ch.broken(l, "it was handed out with %d failures, %d crashes and the checkpoint %q; it has %d, %d and %q",
				t.Failures, t.Crashes, t.Checkpoint, l.Failures, l.Crashes, l.Checkpoint)
		}
		ch.attempts[leaseOf{t.ID, t.Lease.Token}] = &attempt{
			n: c.author, lost: c.lost, at: c.sent, until: c.sent.Add(q.Lease),
		}
	}
}

// settled checks the answers to outcomes. The events have been applied already.
func (ch *checker) settled(c *call) {
	outcomes, answers := c.args.([]queue.Outcome), c.answer.([]error)
	for i := range outcomes {
		o := &outcomes[i]
		l := ch.lives[o.ID]
		var want error
		if l == nil || l.forgotten || l.ended[o.Token] != o.Kind.Trigger() {
			want = queue.ErrStale
		}
		if !errors.Is(answers[i], want) {
			ch.broken(l, "%s with the token %d is answered %v; want %v", o.Kind, o.Token, answers[i], want)
		}
		if l != nil && l.live(o.Token) {
			ch.broken(l, "its lease lives, though it was settled: %v", answers[i])
		}
	}
}

// extend applies a heartbeat.
func (ch *checker) extend(b *queue.Heartbeat) {
	l := ch.lives[b.ID]
	if l != nil && l.live(b.Token) {
		l.Extend(ch.clock, b)
	}
}

// heartbeatsAnswered checks the answers to heartbeats.
func (ch *checker) heartbeatsAnswered(c *call) {
	heartbeats, answers := c.args.([]queue.Heartbeat), c.answer.([]queue.Answer)
	for i := range heartbeats {
		b := &heartbeats[i]
		l := ch.lives[b.ID]
		want := queue.Answer{Stop: queue.StopLost}
		if l != nil && l.live(b.Token) {
			want = l.Answer()
		}
		if answers[i] != want {
			ch.broken(l, "the worker with the token %d is answered %+v; want %+v", b.Token, answers[i], want)
		}
		if a := ch.attempts[leaseOf{b.ID, b.Token}]; a != nil && want.Stop == 0 && !c.lost {
			a.until = c.sent.Add(b.Lease)
		}
	}
}

// giveOrders applies a command to running tasks, which raise no event. Changes of other
// tasks are checked by their number.
func (ch *checker) giveOrders(c *call) {
	q := c.args.(queue.Command)
	for _, l := range ch.order {
		if l.running() && reference.Matches(&q.Filter, &l.Task.Task) {
			l.Obey(&q)
		}
	}
}

// explained checks the reasons for which a task waits.
func (ch *checker) explained(l *life) {
	if ch.w.store == nil || ch.w.ill || ch.lives[l.ID] != l { // forgotten, and submitted again
		return
	}
	why, err := ch.w.store.Explain(ch.w.ctx, ch.clock, l.ID)
	switch {
	case l.forgotten:
		if !errors.Is(err, queue.ErrNotFound) {
			ch.broken(l, "it is explained though it is forgotten: %v", err)
		}
	case err != nil || (len(why) > 0) != l.State.Pending():
		ch.broken(l, "it is %s, for the reasons %+v, %v", l.State, why, err)
	}
	codes := make([]string, len(why))
	for i := range why {
		codes[i] = fmt.Sprint(why[i].Code)
	}
	ch.w.log("%s is %s: %v", l, l.State, codes)
}
