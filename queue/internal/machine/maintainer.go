package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// maintainer does what is due: delayed tasks become ready, leases without heartbeats are
// lost, deadlines pass, finished tasks and queues of no use are forgotten. Apart from one
// look at each queue it goes only through what is due. The caller of each method holds
// the lock of the machine.
type maintainer struct {
	attempts    *attempts
	clock       *clock
	deps        *dependencies
	holds       *holds
	journal     *journal.Journal
	keyRates    *keyRates
	passes      *passes
	queues      *queueSet
	rows        *taskRows
	settings    *settingSet
	states      *stateIndex
	tasks       *tasks
	total       *total
	transitions *transitions
	uniqueNames *uniqueNames
	watchers    *watchers
}

// maintain makes at most limit changes. It returns when the next one is due, 0 if none
// is, and what is left of the limit; if that is 0, the next one is due now.
func (n *maintainer) maintain(limit int) (at int64, left int) {
	n.keyRates.unblock()
	n.total.lapse()
	for limit > 0 && n.journal.Failed() == nil && n.taskDue() {
		limit--
	}
	for limit > 0 && n.uniqueNames.expire() {
		limit--
	}
	if limit > 0 {
		at, limit = n.finishedTasks(limit)
	}
	if limit == 0 {
		at = n.clock.now // there may be more
	} else {
		for _, h := range []*heap[*task]{&n.states.due, &n.states.leases, &n.states.deadlines} {
			if e, ok := h.first(); ok {
				at = soonest(at, e.rank)
			}
		}
		if e, ok := n.uniqueNames.ends.first(); ok {
			at = soonest(at, e.rank)
		}
		if e, ok := n.keyRates.byTime.first(); ok {
			at = soonest(at, e.rank)
		}
		if lapses := n.total.lapse(); lapses > 0 {
			at = soonest(at, lapses)
		}
	}
	return at, limit
}

// taskDue does what is due first of delays, leases and deadlines, and reports whether
// anything was due.
func (n *maintainer) taskDue() bool {
	at, do, due := n.clock.now, (func(*task))(nil), (*task)(nil)
	for _, of := range []struct {
		heap *heap[*task]
		do   func(*task)
	}{{&n.states.due, n.dueNow}, {&n.states.leases, n.attempts.lose}, {&n.states.deadlines, n.transitions.expire}} {
		if e, ok := of.heap.first(); ok && (e.rank < at || e.rank == at && due == nil) {
			at, do, due = e.rank, of.do, e.of
		}
	}
	if due == nil {
		return false
	}
	do(due)
	n.passes.advance()
	return true
}

// finishedTasks forgets finished tasks that retention keeps no longer, and queues of no
// use. It returns when the next task is to be forgotten, and what is left of the limit.
func (n *maintainer) finishedTasks(limit int) (next int64, left int) {
	for _, q := range n.queues.all() {
		for _, of := range []queue.State{queue.Succeeded, queue.Dead} {
			for limit > 0 {
				t, now, at := n.expired(q, of)
				if !now {
					next = soonest(next, at)
					break
				}
				limit--
				if !n.deps.pin(t) {
					n.expel(t, cause{on: queue.OnForget})
					n.passes.advance()
				}
			}
		}
		n.queue(q)
	}
	return next, limit
}

// expired returns the finished task of a queue that is to be forgotten first, nil if
// there is none; whether it is to be forgotten now; and if not, when.
func (n *maintainer) expired(q *queueState, of queue.State) (t *task, now bool, at int64) {
	ends := q.ends(of)
	if ends.n == 0 {
		return nil, false, 0
	}
	t, r := n.tasks.at(ends.first), q.keep(of)
	if at = t.at + int64(r.Age); at > n.clock.away.from && at <= n.clock.away.to {
		at = n.clock.away.to + int64(keepReopened)
	}
	return t, ends.n > r.Count || at <= n.clock.now, at
}

// expel forgets a task that retention keeps no longer. Its row is read only if the task
// has a unique name, or there is a watcher.
func (n *maintainer) expel(t *task, w cause) {
	if !n.watchers.any() && !t.unique {
		n.transitions.drop(t, w)
		return
	}
	row, _ := n.rows.readable(t) // a row that cannot be read is forgotten as well
	n.transitions.forget(t, &row, w)
	n.uniqueNames.keep(&row)
}

// dueNow lets a scheduled task go on whose time has come, or repairs a task in
// quarantine.
func (n *maintainer) dueNow(t *task) {
	if t.damaged() {
		n.holds.repair(t)
	} else {
		n.transitions.revise(t, n.transitions.pending(t, 0), cause{on: queue.OnDue})
	}
}

// queue removes a queue that has been of no use for long.
func (n *maintainer) queue(q *queueState) {
	switch {
	case n.needed(q):
		q.idle = 0
	case q.idle == 0:
		q.idle = n.clock.now
	case n.clock.now-q.idle >= int64(queueLives):
		n.total.leave(q)
		n.queues.remove(q)
	}
}

// needed reports whether a queue differs from one that is made anew when it is named
// again: by tasks, settings, listeners, or starts that count against its rates. Ends of
// leases that a crash could take back make no difference: they are durable before any
// task is that is submitted later, and so before one starts.
func (n *maintainer) needed(q *queueState) bool {
	for _, tasks := range q.states {
		if tasks > 0 {
			return true
		}
	}
	_, set := n.settings.byName[q.name]
	return set || len(q.listeners) > 0 || len(q.keys) > 0 || q.arrival.ns >= n.clock.now
}

// soonest returns the earlier of two times, of which 0 is none.
func soonest(at, other int64) int64 {
	if at == 0 || other > 0 && other < at {
		return other
	}
	return at
}

// queueLives is how long a queue that is of no use is kept, with the counts of what has
// ended in it.
const queueLives = 24 * time.Hour
