package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// turn is the place of a queue that was refused a start because of the total.
type turn struct {
	queue string
	until time.Time // until when a slot is reserved for it; zero if none is
}

// total is how many tasks of all queues run at once; 0 is no limit.
func (n *naive) total() int {
	v, _ := n.value("", "", queue.FieldTotal)
	return v.Total
}

// totalOfKey is how many tasks of a key of all queues run at once; 0 is no limit.
func (n *naive) totalOfKey(key string) int {
	v, set := n.value("", key, queue.FieldTotal)
	if !set {
		v, _ = n.value("", "", queue.FieldTotalPerKey)
		return v.TotalPerKey
	}
	return v.Total
}

// runningOfAll counts what runs in all queues, and of a key if one is given.
func (n *naive) runningOfAll(key *string) (count int) {
	for _, r := range n.rows {
		if r.State == queue.Running && (key == nil || r.Key == *key) {
			count++
		}
	}
	return count
}

// reserve reserves the free slots for the queues that were refused first, each for a
// second.
func (n *naive) reserve() {
	free := n.total() - n.runningOfAll(nil)
	idle := func(name string) bool {
		return !slices.ContainsFunc(n.rows, func(r *row) bool {
			return r.Queue == name && r.State == queue.Waiting && len(n.limits(r)) == 0
		})
	}
	n.turns = slices.DeleteFunc(n.turns, func(t turn) bool {
		return idle(t.queue) || !t.until.IsZero() && !t.until.After(n.now)
	})
	for i := range n.turns {
		if i < free && n.turns[i].until.IsZero() {
			n.turns[i].until = n.now.Add(time.Second)
		}
	}
}

// totalAllows reports whether the total lets a queue start a task: slots are free, and
// not reserved for queues that were refused before it.
func (n *naive) totalAllows(name string) bool {
	if n.total() == 0 {
		return true
	}
	before := slices.IndexFunc(n.turns, func(t turn) bool { return t.queue == name })
	if before < 0 {
		before = len(n.turns)
	}
	return n.total()-n.runningOfAll(nil) > before
}

// refuse queues up the queue of a claim that has tasks to start and gets no more,
// because of the total. It returns when to come back, if the slots that are free are
// reserved for others.
func (n *naive) refuse(c queue.Claim) (next time.Time) {
	switch free := n.total() - n.runningOfAll(nil); {
	case n.totalAllows(c.Queue) || len(n.ready(c)) == 0:
		n.started(c.Queue)
		n.reserve()
		return time.Time{}
	case !slices.ContainsFunc(n.turns, func(t turn) bool { return t.queue == c.Queue }):
		n.turns = append(n.turns, turn{queue: c.Queue})
		fallthrough
	default:
		if free > 0 {
			next = n.turns[0].until
		}
		return next
	}
}

// started ends the turn of a queue.
func (n *naive) started(name string) {
	n.turns = slices.DeleteFunc(n.turns, func(t turn) bool { return t.queue == name })
}

// runningByQueue counts what runs, and of a key if one is given.
func (n *naive) runningByQueue(key *string) map[string]int {
	running := make(map[string]int)
	for _, r := range n.rows {
		if r.State == queue.Running && (key == nil || r.Key == *key) {
			running[r.Queue]++
		}
	}
	return running
}

// totals is what counts for all queues together.
func (n *naive) totals() queue.Total {
	t := queue.Total{Running: n.runningOfAll(nil), Keys: make(map[string]int)}
	for _, f := range []queue.Field{queue.FieldTotal, queue.FieldTotalPerKey} {
		if v, set := n.value("", "", f); set {
			t.Limits.Copy(f, &v.Settings)
			if t.Limits.From == nil {
				t.Limits.From = make(map[queue.Field]queue.Origin)
			}
			t.Limits.From[f] = v.Origin
		}
	}
	for of := range n.settings.values {
		if of.key != "" && of.field == queue.FieldTotal {
			t.Keys[of.key] = n.runningOfAll(&of.key)
		}
	}
	return t
}
