package simulation_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
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
	case l.state != e.From:
		j.broken(l, "it is %s: %+v", l.state, e)
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
	l.state = e.To
}

// accept takes a new task into the account.
func (j *judge) accept(c *call, e *queue.Event) {
	tasks := c.tasks()
	i := slices.IndexFunc(tasks, func(t queue.NewTask) bool { return t.ID == e.ID })
	if was := j.lives[e.ID]; i < 0 || was != nil && !was.forgotten {
		j.broken(was, "it is accepted by %s", c.name)
		return
	}
	l := &life{NewTask: tasks[i], no: len(j.order) + 1, state: e.To, ended: make(map[queue.Token]queue.Trigger)}
	if first := j.unique(&l.NewTask); first != nil {
		j.broken(l, "%s has the same Unique", first)
	}
	poison := slices.ContainsFunc(j.order, func(o *life) bool {
		return !o.forgotten && o.poison && o.Kind == l.Kind && string(o.Payload) == string(l.Payload)
	})
	if poison != (e.To == queue.Dead) {
		j.broken(l, "it is %s, and its work is poison: %t", e.To, poison)
	}
	if !poison && l.RunAt.After(j.clock) != (e.To == queue.Scheduled) {
		j.broken(l, "it is %s, and is to run at %s", e.To, l.RunAt.Sub(j.w.begun))
	}
	l.unique = j.clock.Add(l.UniqueFor)
	j.lives[l.ID] = l
	j.order = append(j.order, l)
}

// leave ends the lease of a task.
func (j *judge) leave(c *call, l *life, e *queue.Event) {
	on := e.On
	if c.name == "Settle" {
		o := outcomeOf(c, l)
		switch {
		case o == nil:
			j.broken(l, "%s ends the lease %d, which it does not name", c.name, l.token)
			return
		case e.On == queue.OnPause || e.On == queue.OnCancel:
			on = queue.OnRelease
			if l.order.Trigger() != e.On {
				j.broken(l, "%s, and it was told to %q", e.On, l.order)
			}
			l.order = 0
		}
		if o.Kind.Trigger() != on {
			j.broken(l, "%s was settled as %s", o.Kind, e.On)
		}
		if o.Checkpoint != nil {
			l.checkpoint = o.Checkpoint
		}
	} else if c.name != "Maintain" {
		j.broken(l, "%s ends its lease", c.name)
	}
	if e.Token != l.token {
		j.broken(l, "its lease %d ends as %d", l.token, e.Token)
	}
	l.ended[l.token] = on
	if on == queue.OnRelease || on == queue.OnLost {
		return
	}
	l.crashes = 0
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
	case queue.OnFailure:
		j.failed(c, l, e)
	case queue.OnSnooze:
		l.RunAt = outcomeOf(c, l).RunAt
	case queue.OnLost:
		j.lost(l, e)
	case queue.OnDue:
		if l.RunAt.After(j.clock) {
			j.broken(l, "it is due at %s", l.RunAt.Sub(j.w.begun))
		}
	case queue.OnExpire:
		if l.Deadline.IsZero() || l.Deadline.After(j.clock) {
			j.broken(l, "its deadline is %s", l.Deadline.Sub(j.w.begun))
		}
		if c.name == "Claim" {
			l.doubt, l.applies = l.state, j.w.disk.applies
		}
	case queue.OnRetry:
		j.retried(l)
	case queue.OnPause, queue.OnCancel:
		j.halted(c, l, e)
	case queue.OnForget:
		l.forgotten = true
		if c.name != "Maintain" { // a purge ends that
			l.unique = time.Time{}
		}
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
	if l.order.Trigger() == e.On {
		l.order = 0
		return
	}
	// Only a task that was to succeed first can do so, if it is forgotten or was
	// cancelled in the same way.
	lost := func(id queue.ID) bool {
		o := j.lives[id]
		return o.no > l.no || o.forgotten || o.orphaned // a later one has the ID of one that is forgotten
	}
	if e.On != queue.OnCancel || !slices.ContainsFunc(l.After, lost) {
		j.broken(l, "nobody said that it should %s", e.On)
	}
	l.orphaned = true
}

func (j *judge) failed(c *call, l *life, e *queue.Event) {
	o := outcomeOf(c, l)
	l.failures++
	l.RunAt = o.RunAt
	if dead := o.Permanent || l.failures >= atMost(l.MaxAttempts); dead != (e.To == queue.Dead) {
		j.broken(l, "it is %s after %d failures of %d, permanent %t", e.To, l.failures, atMost(l.MaxAttempts), o.Permanent)
	}
}

func (j *judge) lost(l *life, e *queue.Event) {
	if l.until.After(j.clock) {
		j.broken(l, "its lease %d is over at %s, and it has been lost", l.token, l.until.Sub(j.w.begun))
	}
	if j.sound(l) {
		j.broken(l, "its lease %d is lost though nothing goes wrong", l.token)
	}
	delete(l.ended, l.token)
	l.crashes++
	dead := l.crashes >= atMost(l.MaxCrashes)
	if dead != (e.To == queue.Dead) {
		j.broken(l, "it is %s after %d crashes", e.To, l.crashes)
	}
	l.poison = dead
}

func (j *judge) retried(l *life) {
	l.RunAt = j.clock
	if !l.state.Finished() {
		return
	}
	l.failures, l.crashes, l.poison, l.orphaned = 0, 0, false, false
	if !l.Deadline.After(j.clock) {
		l.Deadline = time.Time{}
	}
}

// suspected reports whether a task has crashed, and the next crash makes it dead.
func (l *life) suspected() bool { return l.crashes > 0 && l.crashes == atMost(l.MaxCrashes)-1 }

// suspectHeld reports whether a task has to wait for a suspect that runs, because
// it is one itself.
func (j *judge) suspectHeld(l *life) bool {
	return l.suspected() && slices.ContainsFunc(j.order, func(o *life) bool {
		return o != l && o.running() && o.Queue == l.Queue && o.suspected()
	})
}

// atMost is a number of attempts, or its default.
func atMost(n int) int {
	if n == 0 {
		return 3
	}
	return n
}

// claim looks at a task that starts.
func (j *judge) claim(c *call, l *life, e *queue.Event) {
	q := c.args.(queue.Claim)
	if e.Token <= l.token {
		j.broken(l, "token %d comes after %d", e.Token, l.token)
	}
	if why := j.mayNotStart(c, l, &q); why != "" {
		j.broken(l, "it is claimed, but %s", why)
	}
	l.worker, l.token, l.until, l.noted = q.Worker, e.Token, j.clock.Add(q.Lease), c.err == nil
	j.spend(l)
}

// mayNotStart says why a task may not be claimed. One that the claim itself sets
// free, because what it waited for has passed its deadline, may come behind those
// that the claim has seen before.
func (j *judge) mayNotStart(c *call, l *life, q *queue.Claim) string {
	s, all := j.of(l.Queue), j.of("")
	running, ofKey := 0, 0
	total, totalOfKey := j.totals(l.Key)
	for _, o := range j.order {
		if o.forgotten || o.Queue != l.Queue {
			continue
		}
		if o.running() {
			running++
			if o.Key == l.Key {
				ofKey++
			}
		}
		if l.Group != "" && o != l && o.Group == l.Group && (o.running() || o.unfinished() && o.no < l.no) {
			return fmt.Sprintf("%s of its group is %s", o, o.state)
		}
		if o.state == queue.Waiting && o.no < l.no && o.Tier == l.Tier && o.Key == l.Key && o.freed != c &&
			!j.suspectHeld(o) && slices.Contains(q.Kinds, o.Kind) && (o.Deadline.IsZero() || o.Deadline.After(j.clock)) {
			return fmt.Sprintf("%s is older", o)
		}
		if !l.AfterBatch.IsZero() && o.Batch == l.AfterBatch && o.unfinished() {
			return fmt.Sprintf("%s of the batch before it is %s", o, o.state)
		}
	}
	for _, id := range l.After {
		// A later one has its ID anew, and that which it came after is forgotten.
		if o := j.lives[id]; o.no < l.no && !o.forgotten && o.state != queue.Succeeded {
			return fmt.Sprintf("%s before it is %s", o, o.state)
		}
	}
	for _, id := range l.AfterAny {
		if o := j.lives[id]; o.no < l.no && o.unfinished() {
			return fmt.Sprintf("%s before it, of which any end will do, is %s", o, o.state)
		}
	}
	switch {
	case q.Queue != l.Queue || !slices.Contains(q.Kinds, l.Kind):
		return "the worker does not know it"
	case j.paused(l.Queue):
		return "its queue is paused"
	case j.suspectHeld(l):
		return "another suspect of its queue runs"
	case s.Max > 0 && running >= s.Max:
		return fmt.Sprintf("%d run", running)
	case l.Key != "" && s.PerKey > 0 && ofKey >= s.PerKey:
		return fmt.Sprintf("%d run of its key", ofKey)
	case all.Total > 0 && total >= all.Total:
		return fmt.Sprintf("%d run in all queues", total)
	case l.Key != "" && all.TotalPerKey > 0 && totalOfKey >= all.TotalPerKey:
		return fmt.Sprintf("%d run of its key in all queues", totalOfKey)
	case l.RunAt.After(j.clock):
		return "it is not due"
	case !l.Deadline.IsZero() && !l.Deadline.After(j.clock):
		return "its deadline has passed"
	default:
		return ""
	}
}
