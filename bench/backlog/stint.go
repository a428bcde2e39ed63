package backlog

import policy "github.com/stintgo/stint/internal/backlog"

// slots and running leave room for one more start, below the caps of the upper
// tiers and above those of the lower ones, whose turns the guard gives them.
const (
	slots   = 100
	running = 50
)

type policyQueue struct {
	backlog *policy.Backlog[int]
	entries []*policy.Entry[int]
}

func newPolicy(tiers []int) *policyQueue {
	q := &policyQueue{
		backlog: policy.New[int](policy.Config{Max: slots, Caps: [policy.Tiers]int{10, 20, 40, 60, 80, 90, 100}}),
		entries: make([]*policy.Entry[int], 0, len(tiers)),
	}
	for i, tier := range tiers {
		e := &policy.Entry[int]{Value: i}
		q.entries = append(q.entries, e)
		q.backlog.Push(e, policy.Arrival{Tier: int8(tier), Weight: 1})
	}
	return q
}

func (q *policyQueue) next() bool {
	e := q.backlog.Peek(running)
	if e == nil {
		return false
	}
	tier := e.Tier()
	q.backlog.Start(e)
	q.backlog.Push(e, policy.Arrival{Tier: int8(tier), Weight: 1})
	return true
}

func (q *policyQueue) cancel(i int) bool {
	e := q.entries[i]
	tier := e.Tier()
	ok := q.backlog.Remove(e)
	q.backlog.Push(e, policy.Arrival{Tier: int8(tier), Weight: 1})
	return ok
}

func (q *policyQueue) forget() { q.entries = nil }
