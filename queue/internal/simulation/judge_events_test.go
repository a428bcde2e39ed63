package simulation_test

import (
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// reasonsTable is which calls can bring which changes.
var reasonsTable = map[queue.Trigger][]string{
	queue.OnSubmit: {"Submit", "Reschedule"}, queue.OnClaim: {"Claim"},
	queue.OnSuccess: {"Settle"}, queue.OnFailure: {"Settle"}, queue.OnSnooze: {"Settle"}, queue.OnRelease: {"Settle"},
	queue.OnLost: {"Maintain"}, queue.OnExpire: {"Maintain", "Claim"}, queue.OnForget: {"Maintain", "Command"},
	queue.OnPause: {"Command", "Settle", "Maintain"}, queue.OnCancel: {"Command", "Settle", "Maintain"},
	queue.OnResume: {"Command"}, queue.OnRetry: {"Command"}, queue.OnEdit: {"Command"}, queue.OnDue: {"Maintain", "Settle"},
	queue.OnHold: {"Submit", "Command", "Settle", "Maintain"}, queue.OnUnhold: {"Settle", "Command", "Maintain", "Claim"},
}

// event takes a change of state into the account, if it can be.
func (j *judge) event(c *call, e *queue.Event) {
	if e.Missed > 0 {
		j.broken(nil, "%d events were missed", e.Missed)
	}
	if e.From == 0 {
		j.accept(c, e)
		return
	}
	l := j.lives[e.ID]
	switch {
	case l == nil || l.forgotten:
		j.broken(l, "it is not there: %+v", e)
		return
	case l.State != e.From:
		j.broken(l, "it is %s: %+v", l.State, e)
	case !queue.Allowed(e.From, e.On, e.To):
		j.broken(l, "there is no such change: %+v", e)
	case !slices.Contains(reasonsTable[e.On], c.name):
		j.broken(l, "%s cannot bring %s", c.name, e.On)
	case !e.At.Equal(j.clock):
		j.broken(l, "%s at %s, and it is %s", e.On, e.At.Sub(j.w.begun), j.clock.Sub(j.w.begun))
	}
	if e.From == queue.Running {
		j.leave(c, l, e)
	}
	j.change(c, l, e)
	if e.To != 0 {
		l.Record(e.Step)
	}
}

// accept takes a new task into the account.
func (j *judge) accept(c *call, e *queue.Event) {
	i := slices.IndexFunc(j.fresh, func(t *reference.Task) bool { return t.ID == e.ID })
	if i < 0 || j.fresh[i].State != 0 {
		j.broken(j.lives[e.ID], "it is accepted by %s", c.name)
		return
	}
	l := &life{Task: j.fresh[i], ended: make(map[queue.Token]queue.Trigger)}
	if want, _ := j.rules.Submissions.First(j.clock, l.Task); e.To != want.To {
		j.broken(l, "it is %s at first, want %s", e.To, want.To)
	}
	l.Record(e.Step)
	j.lives[l.ID] = l
	j.order = append(j.order, l)
}

// leave ends the lease of a task.
func (j *judge) leave(c *call, l *life, e *queue.Event) {
	on := e.On
	l.obeys = l.Order
	if c.name == "Settle" {
		o := outcomeOf(c, l)
		if o == nil {
			j.broken(l, "%s ends the lease %d, which it does not name", c.name, l.token)
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
			j.broken(l, "%s, ordered to %q, was settled as %s: %s; want %s, %s", o.Kind, l.Order, e.On, e.To, want, to)
		}
	} else if c.name != "Maintain" {
		j.broken(l, "%s ends its lease", c.name)
	}
	if e.Token != l.Lease.Token {
		j.broken(l, "its lease %d ends as %d", l.Lease.Token, e.Token)
	}
	l.ended[l.token] = on
}

// outcomeOf is the outcome of a task's lease among those of a call.
func outcomeOf(c *call, l *life) *queue.Outcome {
	outcomes, _ := c.args.([]queue.Outcome)
	for i := range outcomes {
		if o := &outcomes[i]; o.ID == l.ID && o.Token == l.token {
			return o
		}
	}
	return nil
}

// change takes into the account what a change means.
func (j *judge) change(c *call, l *life, e *queue.Event) {
	switch e.On {
	case queue.OnClaim:
		j.claim(c, l, e)
	case queue.OnLost:
		j.lost(l, e)
	case queue.OnDue:
		if l.RunAt.After(j.clock) {
			j.broken(l, "it is due at %s", l.RunAt.Sub(j.w.begun))
		}
	case queue.OnExpire:
		if !l.Late(j.clock) {
			j.broken(l, "its deadline is %s", l.Deadline.Sub(j.w.begun))
		}
		if c.name == "Claim" {
			l.doubt, l.applies = l.State, j.w.disk.applies
		}
	case queue.OnRetry:
		j.retried(l)
	case queue.OnPause, queue.OnCancel:
		j.halted(c, l, e)
	case queue.OnForget:
		l.forgotten = true
		j.rules.Tasks.Forget(l.Task, c.name == "Maintain")
	case queue.OnUnhold:
		l.freed = c
	default:
	}
}

// halted is a pause or a cancel of a task that does not run.
func (j *judge) halted(c *call, l *life, e *queue.Event) {
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
	// Only a task that was to succeed first can do so, if it is forgotten or was
	// cancelled in the same way.
	lost := func(id queue.ID) bool {
		o := j.lives[id]
		return o.Seq > l.Seq || o.forgotten || o.orphaned // a later one has the ID of one that is forgotten
	}
	if e.On != queue.OnCancel || !slices.ContainsFunc(l.After, lost) {
		j.broken(l, "nobody said that it should %s", e.On)
	}
	l.orphaned = true
}

func (j *judge) lost(l *life, e *queue.Event) {
	if l.Lease.Until.After(j.clock) {
		j.broken(l, "its lease %d is over at %s, and it has been lost", l.token, l.Lease.Until.Sub(j.w.begun))
	}
	if j.sound(l) {
		j.broken(l, "its lease %d is lost though nothing goes wrong", l.token)
	}
	delete(l.ended, l.token)
	if dead := l.Lose(); dead != (e.To == queue.Dead) {
		j.broken(l, "it is %s after %d crashes", e.To, l.Crashes)
	}
}

func (j *judge) retried(l *life) {
	l.orphaned = l.orphaned && !l.State.Finished()
	l.Retry(j.clock)
}

// claim looks at a task that starts. A task that the claim itself sets free, because what
// it waited for has passed its deadline, may come behind those that the claim has seen
// before.
func (j *judge) claim(c *call, l *life, e *queue.Event) {
	q := c.args.(queue.Claim)
	if e.Token <= l.token {
		j.broken(l, "token %d comes after %d", e.Token, l.token)
	}
	if err := j.rules.Limits.MayStart(j.clock, l.Task, q); err != nil {
		j.broken(l, "it is claimed, but %v", err)
	}
	if holds := j.rules.Before.Waits(l.Task); len(holds) > 0 {
		j.broken(l, "it is claimed, but waits for %v", holds)
	}
	for _, older := range j.rules.Limits.Older(j.clock, l.Task, q) {
		if o := j.lives[older.ID]; o.freed != c {
			j.broken(l, "it is claimed, but %s is older", o)
		}
	}
	l.token, l.answered = e.Token, c.err == nil
	l.Lend(j.clock, q, e.Token)
	j.rules.Rates.Spend(j.clock, l.Task)
}
