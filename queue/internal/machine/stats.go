package machine

import (
	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// counts counts tasks and limits for Stats. It changes nothing. The caller of each method
// holds the lock of the machine.
type counts struct {
	keyTotals *keyTotals
	settings  *settingSet
	tasks     *tasks
}

// of returns the counts of a queue at a time, which is now or later.
func (x *counts) of(q *queueState, at int64) queue.Counts {
	c := queue.Counts{
		States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Damaged: q.damaged, Ended: q.ended,
		Limits: q.inForce, Keys: x.settings.keysWithLimits(q),
	}
	c.Limits.Paused = clonePause(c.Limits.Paused)
	for _, state := range queue.States() {
		if n := q.states[state]; n > 0 {
			c.States[state] = n
		}
	}
	held := q.order.Keys().Held()
	q.blocked.before(at, func(k *keyRate) { // whose rates allow a start again at that time
		if !q.order.Keys().AtLimit(k.key) && !x.keyTotals.full(k.key) {
			held -= q.order.Keys().Queued(k.key)
		}
	})
	held += x.suspectsHeld(q, at)
	if q.settings.Paused != nil {
		held = q.order.Len()
	}
	if held > 0 {
		c.States[queue.Held] += held
		if c.States[queue.Waiting] -= held; c.States[queue.Waiting] == 0 {
			delete(c.States, queue.Waiting)
		}
	}
	if at, ok := x.oldest(q); ok {
		c.Oldest = timeOf(at)
	}
	for tier, n := range q.tiers {
		if n > 0 {
			c.Tiers[stint.Lowest+stint.Priority(tier)] = n
		}
	}
	return c
}

// oldest returns since when the oldest Waiting task of a queue that no limit holds has
// been Waiting. It skips a bounded number of held tasks; if there are more, the time is
// too early.
func (x *counts) oldest(q *queueState) (at int64, ok bool) {
	const most = 4096
	if q.settings.Paused != nil {
		return 0, false
	}
	no := q.waiting.first
	for n := 0; no != 0; n++ {
		t := x.tasks.at(no)
		if !q.held(t) || n == most {
			return t.at, true
		}
		no = t.next
	}
	return 0, false
}

// suspectsHeld returns how many tasks are held as suspects and not also by limits of
// their keys. The cost is linear in the number of suspects, which is at most the number
// of tasks that ran in the processes that crashed.
func (x *counts) suspectsHeld(q *queueState, at int64) (n int) {
	if !q.suspects.held() {
		return 0
	}
	for e := q.suspects.waiting.Front(); e != nil; e = e.Next() {
		if !x.heldByKey(q, e.Value.(*task), at) {
			n++
		}
	}
	return n
}

// heldByKey reports whether limits of its key hold a task that is Waiting at a time,
// which is now or later.
func (x *counts) heldByKey(q *queueState, t *task, at int64) bool {
	if !t.entry.Aside() {
		return false
	}
	key := t.entry.Key()
	return q.order.Keys().AtLimit(key) || x.keyTotals.full(key) || q.rateOf(key) > at
}
