package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// follow starts the tasks that another store has started for the same claim. The
// contract leaves a store a choice, as between keys; what is wrong with this one's
// is the error.
func (n *naive) follow(now time.Time, c queue.Claim, got queue.Claimed) error {
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	c.Queue = orDefault(c.Queue)
	q := n.queue(c.Queue)
	q.turns++ // a claim that starts nothing may be one
	for i, t := range got.Tasks {
		q.turns++
		r := n.row(t.ID)
		if err := n.allowed(r, c, q); err != nil {
			return fmt.Errorf("start %d: task %s: %w", i, t.ID, err)
		}
		n.start(r, c, t.Lease.Token)
	}
	switch {
	case len(got.Tasks) > 1 && full(got.Tasks[:len(got.Tasks)-1], c.Bytes):
		return fmt.Errorf("a claim of %d bytes gets %d tasks", c.Bytes, len(got.Tasks))
	case len(got.Tasks) == c.Max && !got.Next.IsZero():
		return fmt.Errorf("a claim that got all that it asked for is to come back at %v", got.Next)
	case len(got.Tasks) < c.Max && full(got.Tasks, c.Bytes) && !got.Next.Equal(n.now):
		return fmt.Errorf("a claim that got as many bytes as it may is to come back at %v; it is %v", got.Next, n.now)
	case len(got.Tasks) < c.Max && !full(got.Tasks, c.Bytes):
		if err := n.exhausted(c, got.Next); err != nil {
			return err
		}
	}
	n.revise()
	return nil
}

// allowed reports what keeps a task from being the next to start.
func (n *naive) allowed(r *row, c queue.Claim, q *turns) error {
	s, running := n.inForce(c.Queue), n.running(c.Queue, nil)
	switch {
	case r == nil:
		return fmt.Errorf("nobody knows it")
	case !n.claimable(r, c):
		return fmt.Errorf("it is %s, of kind %s, and its deadline is %v", r.State, r.Kind, r.Deadline)
	case len(n.limits(r)) > 0:
		return fmt.Errorf("it is held by %v", n.limits(r))
	case running >= most(s.Max):
		return fmt.Errorf("%d run, which is the limit", running)
	case n.total() > 0 && n.runningOfAll(nil) >= n.total():
		return fmt.Errorf("%d tasks of all queues run, which is the limit", n.total())
	case mayStartAt(s.Rate, q.arrival).After(n.now):
		return fmt.Errorf("the queue's rate allows none before %v", mayStartAt(s.Rate, q.arrival))
	}
	guard := running >= capOf(s, r.Tier)
	for _, other := range n.eligible(c) {
		if other.Tier == r.Tier && other.Key == r.Key && other.seq < r.seq {
			return fmt.Errorf("it is of kind %s, and that of kind %s is older\n%s%s",
				r.Kind, other.Kind, life(r.Task), life(other.Task))
		}
		guard = guard || other.Tier > r.Tier && running < capOf(s, other.Tier)
	}
	// Every eighth turn is the guard's. When its turns are is not part of the
	// contract, so the one that is under way counts in full.
	const share = 8
	if guard {
		q.guarded++
	}
	if q.guarded > q.turns/share+1 {
		return fmt.Errorf("it is start %d before its turn, in %d turns", q.guarded, q.turns)
	}
	return nil
}

// exhausted reports tasks that a claim should have got as well, and a time to come
// back that is wrong.
func (n *naive) exhausted(c queue.Claim, next time.Time) error {
	// The slots of the total that are free may be left to other queues, of which the
	// model has one. For how long is shown by cases.
	const otherQueues = 1
	if n.total() > 0 && n.total()-n.runningOfAll(nil) <= otherQueues {
		return nil
	}
	if r := n.withinCaps(c); r != nil {
		return fmt.Errorf("task %s of tier %s, key %q could have started too: %d run, and in force is %+v",
			r.ID, r.Tier, r.Key, n.running(c.Queue, nil), n.inForce(c.Queue))
	}
	want, others := n.nextStart(c), false
	for _, r := range n.rows {
		for _, h := range n.limits(r) {
			others = others || n.claimable(r, c) && h.Code != queue.HoldKeyRate
		}
		s := n.inForce(c.Queue)
		others = others || n.claimable(r, c) && n.running(c.Queue, nil) >= capOf(s, r.Tier)
	}
	// If other limits keep tasks as well, it is open whether a rate's end is worth
	// coming back for.
	if open := others && (next.IsZero() || want.IsZero()); !open && !next.Equal(want) {
		return fmt.Errorf("the claim is to come back at %v, want %v; it is %v", next, want, n.now)
	}
	return nil
}

// late reports whether there are tasks whose deadline has come.
func (n *naive) late(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.rows, func(r *row) bool {
		return r.State.Pending() && !r.Deadline.IsZero() && !r.Deadline.After(later(n.now, now))
	})
}

// turned notes a finish, which may be a turn in every queue.
func (n *naive) turned() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.queues {
		q.turns += 4 // as many outcomes as a call of the model has
	}
}
