package storetest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

// event is something that is due at a time.
type event struct {
	at time.Time
	do func()
}

func (n *naive) Tend(_ context.Context, now time.Time, limit int) (next time.Time, err error) {
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
			consider(n.forgetAt(r), func() { n.forget(r, queue.Step{On: queue.OnForget}) })
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
)

// forgetAt is when a finished task is kept no longer: at once, if enough have
// ended after it.
func (n *naive) forgetAt(r *row) time.Time {
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
	return r.Changed.Add(cmp.Or(keep.Age, age))
}
