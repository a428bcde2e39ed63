package reference

import (
	"fmt"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// follower checks the choices of another store where the contract allows several, as
// between keys.
type follower struct {
	order  *order
	queues map[string]*guard
}

// guard counts what the starvation guard of a queue may have decided.
type guard struct{ turns, starts int }

func (f *follower) of(name string) *guard {
	g := f.queues[name]
	if g == nil {
		g = &guard{}
		f.queues[name] = g
	}
	return g
}

// check returns what keeps a task from being the next one that a claim starts.
func (f *follower) check(now time.Time, t *Task, c queue.Claim) error {
	o := f.order
	if err := o.Limits.MayStart(now, t, c); err != nil {
		return err
	}
	if older := o.Limits.Older(now, t, c); len(older) > 0 {
		return fmt.Errorf("it is of kind %s, and task %s of kind %s is older\n%s%s",
			t.Kind, older[0].ID, older[0].Kind, steps(t), steps(older[0]))
	}
	s, running := o.Settings.InForce(c.Queue), len(o.Tasks.running(c.Queue, nil))
	guarded := running >= capOf(s, t.Tier)
	for _, other := range o.eligible(now, c) {
		guarded = guarded || other.Tier > t.Tier && running < capOf(s, other.Tier)
	}
	// Every eighth turn is the guard's. When its turns come is not part of the contract,
	// so the one in progress counts in full.
	const share = 8
	g := f.of(c.Queue)
	if guarded {
		g.starts++
	}
	if g.starts > g.turns/share+1 {
		return fmt.Errorf("it is start %d of the starvation guard, in %d turns", g.starts, g.turns)
	}
	return nil
}

// exhausted returns what a claim should have got as well, or that the time at which it is
// to come back is wrong.
func (f *follower) exhausted(now time.Time, c queue.Claim, next time.Time) error {
	o := f.order
	// Free slots of the total may be reserved for other queues, of which the model has
	// one. Cases of the suite show for how long.
	const otherQueues = 1
	if o.Settings.total() > 0 && o.total.free() <= otherQueues {
		return nil
	}
	s, running := o.Settings.InForce(c.Queue), len(o.Tasks.running(c.Queue, nil))
	if t := o.withinCaps(now, c); t != nil {
		return fmt.Errorf("task %s of tier %s, key %q could have started too: %d run, and in force is %+v",
			t.ID, t.Tier, t.Key, running, s)
	}
	want, limited := o.nextStart(now, c), false
	for _, t := range o.Tasks.all {
		for _, h := range o.Limits.holds(now, t) {
			limited = limited || claimable(now, t, c) && h.Code != queue.HoldKeyRate
		}
		limited = limited || claimable(now, t, c) && running >= capOf(s, t.Tier)
	}
	// If other limits keep tasks from starting as well, the contract leaves open whether
	// the claim is to come back when the rate allows a start.
	if open := limited && (next.IsZero() || want.IsZero()); !open && !next.Equal(want) {
		return fmt.Errorf("the claim is to come back at %v, want %v; it is %v", next, want, now)
	}
	return nil
}

// steps returns the steps of a task as text.
func steps(t *Task) string {
	var b strings.Builder
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "\t%s %s → %s %s\n", s.At.Format("15:04:05.000000000"), s.On, s.To, s.By)
	}
	return b.String()
}
