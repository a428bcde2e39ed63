package simulation_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// attempt is the checker's record of one lease at the node that has claimed it.
type attempt struct {
	n     *node
	at    time.Time // when the claim was sent
	lost  bool      // the answer of the claim was lost: the node does not know the lease
	until time.Time // when the lease ends, as far as the node knows

	ctx       context.Context //nolint:containedctx // of the handler, while it runs
	began     bool
	returned  bool
	outcome   queue.OutcomeKind // the outcome that the node must report
	permanent bool
	first     time.Time // when it was first reported
	last      *call     // when it was last reported
}

// began checks that a handler may be called.
func (ch *checker) began(ctx context.Context, n *node, t *queue.Task) {
	lease := leaseOf{t.ID, t.Lease.Token}
	a := ch.attempts[lease]
	switch {
	case a == nil || a.n != n || a.lost:
		ch.broken(ch.lives[t.ID], "%s works on it without a lease", n.name)
		return
	case a.returned:
		ch.broken(ch.lives[t.ID], "%s works on it, and has released it", n.name)
	case a.began:
		ch.broken(ch.lives[t.ID], "%s works on it twice with one lease", n.name)
	}
	a.began, a.ctx = true, ctx
	n.runs[lease] = a
	if used := n.atWork(); used > n.limit {
		ch.broken(ch.lives[t.ID], "%s has handlers at work on %d slots, and has %d", n.host.name, used, n.limit)
	}
	if tier := stint.PriorityFrom(ctx); tier != t.Tier {
		ch.broken(ch.lives[t.ID], "its handler is of tier %s, and it of %s", tier, t.Tier)
	}
	ch.w.log("%s begins %s, token %d", n.name, ch.lives[t.ID], t.Lease.Token)
}

// returned records that a handler is about to return or to panic.
func (ch *checker) returned(n *node, lease leaseOf, end ending, cause error) {
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
		n.rested = ch.w.now()
	}
	ch.w.log("%s ends %s, token %d, with %s: ending %d, %v",
		n.name, ch.name(lease.id), lease.token, a.outcome, end, cause)
	if errors.Is(cause, queue.ErrStale) && ch.sound(ch.lives[lease.id]) && ch.lives[lease.id].live(lease.token) {
		ch.broken(ch.lives[lease.id], "%s gives it up though nothing goes wrong", n.name)
	}
}

// reported compares the outcomes of a Settle with the results of the handlers.
func (ch *checker) reported(c *call) {
	for _, o := range c.args.([]queue.Outcome) {
		a := ch.attempts[leaseOf{o.ID, o.Token}]
		if a != nil && !a.began {
			a.returned, a.outcome = true, queue.OutcomeRelease // no slot was free in time
		}
		if a == nil || a.n != c.author || !a.returned {
			ch.broken(ch.lives[o.ID], "%s settles the token %d, and its handler has not returned", c.author.name, o.Token)
			continue
		}
		if o.Kind != a.outcome || o.Permanent != a.permanent {
			ch.broken(ch.lives[o.ID], "%s says %s, permanent %t; its handler came to %s, %t",
				c.author.name, o.Kind, o.Permanent, a.outcome, a.permanent)
		}
		if a.first.IsZero() {
			a.first = c.sent
		}
		a.last = c
	}
}

// unreached records a call that did not reach the store.
func (ch *checker) unreached(c *call) {
	ch.w.log("%s %s does not reach the store", c.author.name, c.name)
	c.err = queue.ErrUnavailable
	switch c.name {
	case "Settle":
		ch.reported(c)
	case "Find":
		ch.ask(c)
	default:
	}
}

// stopped checks a call of Run that has returned.
func (ch *checker) stopped(n *node, err error, back time.Time) {
	ch.w.log("%s has stopped with %d handlers at work: %v", n.name, len(n.runs), err)
	n.ended = true
	cause := errStop
	if !n.halted.IsZero() {
		ch.ends(n, back)
		if errors.Is(err, queue.ErrStopping) {
			cause = queue.ErrStopping
		}
	}
	complete := err != nil && err.Error() == cause.Error()
	if !errors.Is(err, cause) || complete && len(n.runs) > 0 {
		ch.broken(nil, "%s stops with %d handlers at work: %v", n.name, len(n.runs), err)
	}
	if !n.halted.IsZero() && ch.w.chance(2) {
		defer n.exit()
	}
	if !complete {
		n.rested = n.stopped // when it may give up
		return
	}
	if st := n.slots.Stats(); n.quiet() && (st.Running != 0 || st.Queued != 0) {
		ch.broken(nil, "%s has stopped with %d slots in use and %d waiting", n.host.name, st.Running, st.Queued)
	}
	ch.reportedAll(n)
	if n.halted.IsZero() {
		ch.hooksEnd(n)
	}
}

// ends checks that a call of Run that was ordered to return at once does so. A process
// that is stalled cannot.
func (ch *checker) ends(n *node, back time.Time) {
	const atOnce = time.Second
	since := later(n.halted, n.begun)
	if back.Sub(since) > atOnce && n.stalled.Before(since) {
		ch.broken(nil, "%s was ordered to halt at %s, and still runs", n.name, since.Sub(ch.w.begun))
	}
}

// reportedAll finds attempts of a stopped node whose outcome the store has not received,
// and that the node has not tried to report for as long as a lease lasts.
func (ch *checker) reportedAll(n *node) {
	for lease, a := range ch.attempts {
		if a.n != n || !a.returned || a.last != nil && a.last.err == nil && !a.last.lost {
			continue
		}
		if a.last == nil || !a.last.back.After(a.first.Add(ch.w.lease)) && a.last.back.Before(n.rested.Add(ch.w.lease)) {
			ch.broken(ch.lives[lease.id], "%s has stopped reporting the token %d", n.name, lease.token)
		}
	}
}

// always checks what must hold whenever no goroutine runs.
func (ch *checker) always() {
	now := ch.w.now()
	for _, n := range ch.w.nodes {
		if n.killed {
			continue
		}
		for lease, a := range n.runs {
			if now.After(a.until) && a.ctx.Err() == nil {
				ch.broken(ch.lives[lease.id], "%s works on though its lease %d was over at %s",
					n.name, lease.token, a.until.Sub(ch.w.begun))
			}
		}
	}
}

// sound reports whether a lease that began after the last fault belongs to a node that
// lives.
func (ch *checker) sound(l *life) bool {
	a := ch.attempts[leaseOf{l.ID, l.token}]
	return ch.w.calm && a != nil && !a.lost && !a.n.killed && a.at.After(ch.w.scenario.calmFrom)
}

// awake checks, when the faults have ended and all goroutines wait for time to pass, that
// no node leaves due work undone.
func (ch *checker) awake() {
	const rounding = time.Second
	late := ch.w.poll + rounding
	if ch.w.now().Before(ch.w.scenario.calmFrom.Add(2*late)) || ch.w.now().Before(ch.looked.Add(time.Second)) {
		return
	}
	ch.looked = ch.w.now()
	ch.overdue(late)
	type fifo struct {
		queue, key, kind string
		tier             stint.Priority
	}
	seen, next := make(map[fifo]bool), make(map[*life]bool)
	defer func() { ch.wasNext = next }()
	for _, l := range ch.order {
		if l.forgotten {
			continue
		}
		if l.State == queue.Scheduled && l.RunAt.Add(late).Before(ch.clock) {
			ch.broken(l, "it was due at %s", l.RunAt.Sub(ch.w.begun))
		}
		at := fifo{l.Queue, l.Key, l.Kind, l.Tier}
		if l.State != queue.Waiting || seen[at] || ch.rules.Limits.SuspectHeld(l.Task) {
			continue
		}
		seen[at] = true // the tasks behind it wait for it
		if !ch.idle(l) || !ch.next(l) {
			continue
		}
		if next[l] = true; ch.wasNext[l] { // workers that wait for a rate return a moment after it allows more
			ch.broken(l, "no worker claims it, though it is next")
		}
	}
}

// idle reports whether a node that handles a task has a slot for it.
func (ch *checker) idle(l *life) bool {
	return slices.ContainsFunc(ch.w.nodes, func(n *node) bool {
		return n.works() && n.knows(l) && n.slotFree()
	})
}

// next reports whether the store says that nothing keeps a task from starting.
func (ch *checker) next(l *life) bool {
	why, err := ch.w.store.Explain(ch.w.ctx, ch.clock, l.ID)
	if err != nil {
		ch.broken(l, "why does it wait: %v", err)
		return false
	}
	return len(why) == 1 && why[0].Code == stint.CodeBehind && why[0].Ahead == [stint.Tiers]int{}
}
