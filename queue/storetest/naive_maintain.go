package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// event is something that is due at a time.
type event struct {
	at time.Time
	do func()
}

func (n *naive) Maintain(_ context.Context, now time.Time, limit int) (next time.Time, err error) {
	if limit < 0 {
		return time.Time{}, fmt.Errorf("%w: a limit of %d", queue.ErrInvalid, limit)
	}
	end, err := n.begin(now)
	if err != nil {
		return time.Time{}, err
	}
	defer end()
	for done := 0; limit == 0 || done < limit; done++ {
		e := n.soonest()
		if e == nil || e.at.After(n.now) {
			break
		}
		e.do()
		n.revise()
	}
	n.reserve()
	n.signal()
	if e := n.soonest(); e != nil {
		return e.at, nil
	}
	return time.Time{}, nil
}

// soonest is what is due first of all that is going to happen by itself.
func (n *naive) soonest() (first *event) {
	consider := func(at time.Time, do func()) {
		if !at.IsZero() && (first == nil || at.Before(first.at)) {
			first = &event{at, do}
		}
	}
	if len(n.turns) > 0 {
		consider(n.turns[0].until, n.reserve)
	}
	for _, r := range n.rows {
		if r.State == queue.Scheduled {
			consider(r.RunAt, func() { n.step(r, n.pending(r), queue.Step{On: queue.OnDue}) })
		}
		if r.State.Pending() {
			consider(r.Deadline, func() { n.expire(r) })
		}
		if r.State == queue.Running {
			consider(r.Lease.Until, func() { n.lose(r) })
		}
		if r.State.Finished() {
			consider(n.forgetAt(r), func() {
				n.forget(r, queue.Step{On: queue.OnForget})
				n.uniques = append(n.uniques, r)
			})
		}
	}
	return first
}

func (n *naive) expire(r *row) {
	r.Error = "its deadline came before it started"
	n.step(r, queue.Dead, queue.Step{On: queue.OnExpire, Detail: r.Error})
}

// What is kept of finished tasks if nothing is set.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
	// keepReopened is how much longer those are kept whose age passed while the store was
	// closed.
	keepReopened = time.Hour
)

// forgetAt is when a finished task is kept no longer: at once, if enough have
// ended after it; zero, if it is kept for others.
func (n *naive) forgetAt(r *row) time.Time {
	if n.needed(r) {
		return time.Time{}
	}
	s := n.inForce(r.Queue)
	keep, age := s.Keep, keepAge
	if r.State == queue.Dead {
		keep, age = s.KeepDead, keepDeadAge
	}
	after := 0
	for _, other := range n.rows {
		if other.Queue == r.Queue && other.State.Finished() && other.ended > r.ended &&
			(other.State == queue.Dead) == (r.State == queue.Dead) {
			after++
		}
	}
	if after >= cmp.Or(keep.Count, keepCount) {
		return r.Changed
	}
	at := r.Changed.Add(cmp.Or(keep.Age, age))
	if at.After(n.away[0]) && !at.After(n.away[1]) {
		at = n.away[1].Add(keepReopened)
	}
	return at
}

// needed reports whether a finished task is kept because unfinished tasks come after
// it, of which none waits for its success in vain.
func (n *naive) needed(r *row) (needed bool) {
	for _, other := range n.rows {
		if other.State.Finished() || other.seq < r.seq {
			continue
		}
		after := slices.Contains(other.After, r.ID)
		if after && r.State != queue.Succeeded {
			return false
		}
		needed = needed || after || slices.Contains(other.AfterAny, r.ID)
	}
	return needed
}
