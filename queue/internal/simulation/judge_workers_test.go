package simulation_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// attempt is what the judge knows of one lease at the node that has claimed it.
type attempt struct {
	n     *node
	at    time.Time // when the call set out that claimed it
	lost  bool      // the answer was: the node knows nothing of it
	until time.Time // when it ends, as far as the node knows

	ctx       context.Context //nolint:containedctx // the handler's, while it is at work
	began     bool
	returned  bool
	outcome   queue.OutcomeKind // what the store has to be told
	permanent bool
	first     time.Time // when it was told first
	last      *call     // and last
}

// began is a handler that has been called.
func (j *judge) began(ctx context.Context, n *node, t *queue.Task) {
	lease := leaseOf{t.ID, t.Lease.Token}
	a := j.attempts[lease]
	switch {
	case a == nil || a.n != n || a.lost:
		j.broken(j.lives[t.ID], "%s works on it without a lease", n.name)
		return
	case a.returned:
		j.broken(j.lives[t.ID], "%s works on it, and has given it back", n.name)
	case a.began:
		j.broken(j.lives[t.ID], "%s works on it twice with one lease", n.name)
	}
	a.began, a.ctx = true, ctx
	n.runs[lease] = a
	if used := n.atWork(); used > n.limit {
		j.broken(j.lives[t.ID], "%s has handlers at work on %d slots, and has %d", n.host.name, used, n.limit)
	}
	if tier := stint.PriorityFrom(ctx); tier != t.Tier {
		j.broken(j.lives[t.ID], "its handler is of tier %s, and it of %s", tier, t.Tier)
	}
	j.w.log("%s begins %s, token %d", n.name, j.lives[t.ID], t.Lease.Token)
}

// returned is a handler that is about to return, or to panic.
func (j *judge) returned(n *node, lease leaseOf, end ending, cause error) {
	a := n.runs[lease]
	delete(n.runs, lease)
	ends := []error{queue.ErrPaused, queue.ErrCancelled, queue.ErrStale, queue.ErrStopping}
	switch {
	case end == succeeds:
		a.outcome = queue.OutcomeSuccess
	case slices.Contains(ends, cause):
		a.outcome = queue.OutcomeRelease
	case end == snoozes:
		a.outcome = queue.OutcomeSnooze
	default:
		a.outcome, a.permanent = queue.OutcomeFailure, end == permanent
	}
	a.returned = true
	if !n.ended {
		n.rested = j.w.now()
	}
	j.w.log("%s ends %s, token %d, with %s: ending %d, %v",
		n.name, j.name(lease.id), lease.token, a.outcome, end, cause)
	if errors.Is(cause, queue.ErrStale) && j.sound(j.lives[lease.id]) && j.lives[lease.id].live(lease.token) {
		j.broken(j.lives[lease.id], "%s gives it up though nothing goes wrong", n.name)
	}
}

// reported compares what a store is told with what handlers have returned.
func (j *judge) reported(c *call) {
	for _, o := range c.args.([]queue.Outcome) {
		a := j.attempts[leaseOf{o.ID, o.Token}]
		if a != nil && !a.began {
			a.returned, a.outcome = true, queue.OutcomeRelease // there was no slot in time
		}
		if a == nil || a.n != c.who || !a.returned {
			j.broken(j.lives[o.ID], "%s settles the token %d, and its handler has not returned", c.who.name, o.Token)
			continue
		}
		if o.Kind != a.outcome || o.Permanent != a.permanent {
			j.broken(j.lives[o.ID], "%s says %s, permanent %t; its handler came to %s, %t",
				c.who.name, o.Kind, o.Permanent, a.outcome, a.permanent)
		}
		if a.first.IsZero() {
			a.first = c.sent
		}
		a.last = c
	}
}

// unreached is a call that did not come to the store.
func (j *judge) unreached(c *call) {
	j.w.log("%s %s does not reach the store", c.who.name, c.name)
	c.err = queue.ErrUnavailable
	switch c.name {
	case "Settle":
		j.reported(c)
	case "Find":
		j.ask(c)
	default:
	}
}

// stopped is a call of Run that has returned.
func (j *judge) stopped(n *node, err error, back time.Time) {
	j.w.log("%s has stopped with %d handlers at work: %v", n.name, len(n.runs), err)
	n.ended = true
	cause := errStop
	if !n.halted.IsZero() {
		j.ends(n, back)
		if errors.Is(err, queue.ErrStopping) {
			cause = queue.ErrStopping
		}
	}
	complete := err != nil && err.Error() == cause.Error()
	if !errors.Is(err, cause) || complete && len(n.runs) > 0 {
		j.broken(nil, "%s stops with %d handlers at work: %v", n.name, len(n.runs), err)
	}
	if !n.halted.IsZero() && j.w.chance(2) {
		defer n.exit()
	}
	if !complete {
		n.rested = n.stopped // from when on it may give up
		return
	}
	if st := n.slots.Stats(); n.quiet() && (st.Running != 0 || st.Queued != 0) {
		j.broken(nil, "%s has stopped with %d slots in use and %d waiting", n.host.name, st.Running, st.Queued)
	}
	j.reportedAll(n)
	if n.halted.IsZero() {
		j.hooksEnd(n)
	}
}

// ends looks at a call of Run that was told to return at once. A process that stands
// still cannot.
func (j *judge) ends(n *node, back time.Time) {
	const atOnce = time.Second
	since := later(n.halted, n.begun)
	if back.Sub(since) > atOnce && n.stalled.Before(since) {
		j.broken(nil, "%s was told to halt at %s", n.name, since.Sub(j.w.begun))
	}
}

// reportedAll finds attempts of a node that has stopped of which the store has
// not been told, and that it has not tried to tell for as long as a lease lasts.
func (j *judge) reportedAll(n *node) {
	for lease, a := range j.attempts {
		if a.n != n || !a.returned || a.last != nil && a.last.err == nil && !a.last.lost {
			continue
		}
		if a.last == nil || !a.last.back.After(a.first.Add(j.w.lease)) && a.last.back.Before(n.rested.Add(j.w.lease)) {
			j.broken(j.lives[lease.id], "%s does not tell of the token %d any more", n.name, lease.token)
		}
	}
}

// always looks at what has to hold whenever nothing moves.
func (j *judge) always() {
	now := j.w.now()
	for _, n := range j.w.nodes {
		if n.killed {
			continue
		}
		for lease, a := range n.runs {
			if now.After(a.until) && a.ctx.Err() == nil {
				j.broken(j.lives[lease.id], "%s works on though its lease %d was over at %s",
					n.name, lease.token, a.until.Sub(j.w.begun))
			}
		}
	}
}

// sound reports whether a lease that began when nothing went wrong any more is at
// a node that lives.
func (j *judge) sound(l *life) bool {
	a := j.attempts[leaseOf{l.ID, l.token}]
	return j.w.calm && a != nil && !a.lost && !a.n.killed && a.at.After(j.w.plots.calmFrom)
}

// awake looks for what somebody should be doing, when nothing goes wrong and
// everybody waits for time to pass.
func (j *judge) awake() {
	const rounding = time.Second
	late := j.w.poll + rounding
	if j.w.now().Before(j.w.plots.calmFrom.Add(2*late)) || j.w.now().Before(j.looked.Add(time.Second)) {
		return
	}
	j.looked = j.w.now()
	j.overdue(late)
	type line struct {
		queue, key, kind string
		tier             stint.Priority
	}
	seen, next := make(map[line]bool), make(map[*life]bool)
	defer func() { j.wasNext = next }()
	for _, l := range j.order {
		if l.forgotten {
			continue
		}
		if l.State == queue.Scheduled && l.RunAt.Add(late).Before(j.clock) {
			j.broken(l, "it was due at %s", l.RunAt.Sub(j.w.begun))
		}
		if at := (line{l.Queue, l.Key, l.Kind, l.Tier}); l.State == queue.Waiting && !seen[at] && !j.rules.Limits.SuspectHeld(l.Task) {
			seen[at] = true // the others are behind it
			if !j.idle(l) || !j.next(l) {
				continue
			}
			if next[l] = true; j.wasNext[l] { // those who wait for a rate come back a moment after it allows more
				j.broken(l, "nobody claims it though it is next")
			}
		}
	}
}

// idle reports whether a node that knows a task has a slot for it.
func (j *judge) idle(l *life) bool {
	return slices.ContainsFunc(j.w.nodes, func(n *node) bool {
		return n.works() && n.knows(l) && n.slotFree()
	})
}

// next reports whether the store says that nothing keeps a task from starting.
func (j *judge) next(l *life) bool {
	why, err := j.w.store.Explain(j.w.ctx, j.clock, l.ID)
	if err != nil {
		j.broken(l, "why does it wait: %v", err)
		return false
	}
	return len(why) == 1 && why[0].Code == stint.CodeBehind && why[0].Ahead == [stint.Tiers]int{}
}
