package simulation_test

import (
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// reasonsTable has the calls that may cause each trigger.
var reasonsTable = map[queue.Trigger][]string{
	queue.OnSubmit: {"Submit", "Reschedule"}, queue.OnClaim: {"Claim"},
	queue.OnSuccess: {"Settle"}, queue.OnFailure: {"Settle"}, queue.OnSnooze: {"Settle"}, queue.OnRelease: {"Settle"},
	queue.OnLost: {"Maintain"}, queue.OnExpire: {"Maintain", "Claim"}, queue.OnForget: {"Maintain", "Command"},
	queue.OnPause: {"Command", "Settle", "Maintain"}, queue.OnCancel: {"Command", "Settle", "Maintain"},
	queue.OnResume: {"Command"}, queue.OnRetry: {"Command"}, queue.OnEdit: {"Command"},
	queue.OnDue:  {"Maintain", "Settle"},
	queue.OnHold: {"Submit", "Command", "Settle", "Maintain"}, queue.OnUnhold: {"Settle", "Command", "Maintain", "Claim"},
}

// event checks a change of state and applies it.
func (ch *checker) event(c *call, e *queue.Event) {
	if e.Missed > 0 {
		ch.broken(nil, "%d events were missed", e.Missed)
	}
	if e.From == 0 {
		ch.accept(c, e)
		return
	}
	l := ch.lives[e.ID]
	switch {
	case l == nil || l.forgotten:
		ch.broken(l, "it is not there: %+v", e)
		return
	case l.State != e.From:
		ch.broken(l, "it is %s: %+v", l.State, e)
	case !queue.Allowed(e.From, e.On, e.To):
		ch.broken(l, "there is no such change: %+v", e)
	case !slices.Contains(reasonsTable[e.On], c.name):
		ch.broken(l, "%s cannot bring %s", c.name, e.On)
	case !e.At.Equal(ch.clock):
		ch.broken(l, "%s at %s, and it is %s", e.On, e.At.Sub(ch.w.begun), ch.clock.Sub(ch.w.begun))
	}
	if e.From == queue.Running {
		ch.leave(c, l, e)
	}
	ch.change(c, l, e)
	if e.To != 0 {
		l.Record(e.Step)
	}
}

// accept adds a new task.
func (ch *checker) accept(c *call, e *queue.Event) {
	i := slices.IndexFunc(ch.fresh, func(t *reference.Task) bool { return t.ID == e.ID })
	if i < 0 || ch.fresh[i].State != 0 {
		ch.broken(ch.lives[e.ID], "it is accepted by %s", c.name)
		return
	}
	l := &life{Task: ch.fresh[i], ended: make(map[queue.Token]queue.Trigger)}
	if want, _ := ch.rules.Submissions.First(ch.clock, l.Task); e.To != want.To {
		ch.broken(l, "it is %s at first, want %s", e.To, want.To)
	}
	l.Record(e.Step)
	ch.lives[l.ID] = l
	ch.order = append(ch.order, l)
}

// leave ends the lease of a task.
func (ch *checker) leave(c *call, l *life, e *queue.Event) {
	on := e.On
	l.obeys = l.Order
	if c.name == "Settle" {
		o := outcomeOf(c, l)
		if o == nil {
			ch.broken(l, "%s ends the lease %d, which it does not name", c.name, l.token)
			return
		}
		on = o.Kind.Trigger()
		want, to := on, l.Settle(o)
		if to == 0 {
			if want, to = l.Release(); to != 0 {
				l.obeys = 0
			}
		}
		if e.On != want || to != 0 && e.To != to {
			ch.broken(l, "%s, ordered to %q, was settled as %s: %s; want %s, %s", o.Kind, l.Order, e.On, e.To, want, to)
		}
	} else if c.name != "Maintain" {
		ch.broken(l, "%s ends its lease", c.name)
	}
	if e.Token != l.Lease.Token {
		ch.broken(l, "its lease %d ends as %d", l.Lease.Token, e.Token)
	}
	l.ended[l.token] = on
}

// outcomeOf returns the outcome of a task's lease among those of a call.
func outcomeOf(c *call, l *life) *queue.Outcome {
	outcomes, _ := c.args.([]queue.Outcome)
	for i := range outcomes {
		if o := &outcomes[i]; o.ID == l.ID && o.Token == l.token {
			return o
		}
	}
	return nil
}

// change applies a change of state to the task.
func (ch *checker) change(c *call, l *life, e *queue.Event) {
	switch e.On {
	case queue.OnClaim:
		ch.claim(c, l, e)
	case queue.OnLost:
		ch.lost(l, e)
	case queue.OnDue:
		if l.RunAt.After(ch.clock) {
			ch.broken(l, "it is due at %s", l.RunAt.Sub(ch.w.begun))
		}
	case queue.OnExpire:
		if !l.Late(ch.clock) {
			ch.broken(l, "its deadline is %s", l.Deadline.Sub(ch.w.begun))
		}
		if c.name == "Claim" {
			l.doubt, l.applies = l.State, ch.w.disk.applies
		}
	case queue.OnRetry:
		ch.retried(l)
	case queue.OnPause, queue.OnCancel:
		ch.halted(c, l, e)
	case queue.OnForget:
		l.forgotten = true
		ch.rules.Tasks.Forget(l.Task, c.name == "Maintain")
	case queue.OnUnhold:
		l.freed = c
	default:
	}
}

// halted checks a pause or a cancel of a task that does not run.
func (ch *checker) halted(c *call, l *life, e *queue.Event) {
	if e.From == queue.Running {
		return
	}
	if q, ok := c.args.(queue.Command); ok && q.Do != queue.OrderForget {
		return
	}
	if l.obeys.Trigger() == e.On {
		l.obeys = 0
		return
	}
	// A predecessor can only cancel its dependents if it was to succeed first and is
	// forgotten, or was cancelled in the same way.
	lost := func(id queue.ID) bool {
		o := ch.lives[id]
		return o.Seq > l.Seq || o.forgotten || o.orphaned // a later task may have the ID of a forgotten one
	}
	if e.On != queue.OnCancel || !slices.ContainsFunc(l.After, lost) {
		ch.broken(l, "no call has caused %s", e.On)
	}
	l.orphaned = true
}

func (ch *checker) lost(l *life, e *queue.Event) {
	if l.Lease.Until.After(ch.clock) {
		ch.broken(l, "its lease %d is over at %s, and it has been lost", l.token, l.Lease.Until.Sub(ch.w.begun))
	}
	if ch.sound(l) {
		ch.broken(l, "its lease %d is lost though nothing goes wrong", l.token)
	}
	delete(l.ended, l.token)
	if dead := l.Lose(); dead != (e.To == queue.Dead) {
		ch.broken(l, "it is %s after %d crashes", e.To, l.Crashes)
	}
}

func (ch *checker) retried(l *life) {
	l.orphaned = l.orphaned && !l.State.Finished()
	l.Retry(ch.clock)
}

// claim checks that a task may start. A task that the claim itself releases, because its
// predecessor has passed its deadline, may start after tasks that the claim has passed
// over.
func (ch *checker) claim(c *call, l *life, e *queue.Event) {
	q := c.args.(queue.Claim)
	if e.Token <= l.token {
		ch.broken(l, "token %d comes after %d", e.Token, l.token)
	}
	if err := ch.rules.Limits.MayStart(ch.clock, l.Task, q); err != nil {
		ch.broken(l, "it is claimed, but %v", err)
	}
	if holds := ch.rules.Before.Waits(l.Task); len(holds) > 0 {
		ch.broken(l, "it is claimed, but waits for %v", holds)
	}
	for _, older := range ch.rules.Limits.Older(ch.clock, l.Task, q) {
		if o := ch.lives[older.ID]; o.freed != c {
			ch.broken(l, "it is claimed, but %s is older", o)
		}
	}
	l.token, l.answered = e.Token, c.err == nil
	l.Grant(ch.clock, q, e.Token)
	ch.rules.Rates.Spend(ch.clock, l.Task)
}
