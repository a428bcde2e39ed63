package reference

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// order decides which task of a queue starts next.
type order struct {
	*Rules
	total  *reservations
	queues map[string]*turns
}

// turns is the starts of one queue.
type turns struct {
	starts int
	last   map[tierKey]int // number of the last start of each tier and key
}

// tierKey names tasks that start in the order of their submission: those of one tier and key.
type tierKey struct {
	tier stint.Priority
	key  string
}

func (o *order) of(name string) *turns {
	q := o.queues[name]
	if q == nil {
		q = &turns{last: make(map[tierKey]int)}
		o.queues[name] = q
	}
	return q
}

// started counts a start.
func (o *order) started(t *Task) {
	q := o.of(t.Queue)
	q.starts++
	q.last[tierKey{t.Tier, t.Key}] = q.starts
}

// next returns the task that a claim starts next, nil if it may start none.
func (o *order) next(now time.Time, c queue.Claim) *Task {
	// Every eighth start is for one tier, in rotation, also past the tier's cap.
	const share = 8
	q := o.of(c.Queue)
	if own := q.starts / share % stint.Tiers; q.starts%share == share-1 {
		if t := o.first(o.eligible(now, c), stint.Lowest+stint.Priority(own)); t != nil {
			return t
		}
	}
	return o.withinCaps(now, c)
}

// withinCaps is next without the starvation guard.
func (o *order) withinCaps(now time.Time, c queue.Claim) *Task {
	eligible, running := o.eligible(now, c), len(o.Tasks.running(c.Queue, nil))
	for tier := stint.Highest; tier >= stint.Lowest; tier-- {
		if t := o.first(eligible, tier); t != nil && running < capOf(o.Settings.InForce(c.Queue), tier) {
			return t
		}
	}
	return nil
}

// eligible returns the tasks that a claim could start, caps aside.
func (o *order) eligible(now time.Time, c queue.Claim) []*Task {
	if !o.total.allows(c.Queue) {
		return nil
	}
	return o.Limits.ready(now, c)
}

// first returns the first task of a tier: the oldest of the tier and key that has waited longest
// for its turn.
func (o *order) first(tasks []*Task, tier stint.Priority) (first *Task) {
	last := func(t *Task) int { return o.of(t.Queue).last[tierKey{t.Tier, t.Key}] }
	for _, t := range tasks {
		if t.Tier == tier && (first == nil || last(t) < last(first)) {
			first = t
		}
	}
	return first
}

// nextStart returns when a rate allows a start, if only rates keep a claim from more
// tasks; zero otherwise.
func (o *order) nextStart(now time.Time, c queue.Claim) (next time.Time) {
	s, running := o.Settings.InForce(c.Queue), len(o.Tasks.running(c.Queue, nil))
	for _, t := range o.Tasks.all {
		ofRate := func(h queue.Hold) bool { return h.Code == queue.HoldKeyRate }
		if !claimable(now, t, c) || len(slices.DeleteFunc(o.Limits.holds(now, t), ofRate)) > 0 ||
			running >= capOf(s, t.Tier) || !o.total.allows(c.Queue) {
			continue
		}
		at := o.Rates.ofQueue(c.Queue)
		if t.Key != "" {
			at = later(at, o.Rates.ofKey(t.Queue, t.Key))
		}
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
