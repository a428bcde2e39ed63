package machine

import (
	"errors"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// maintainer makes the changes that are due by time: delayed tasks become ready, leases
// without heartbeats are lost, tasks expire at their deadlines, and retention forgets
// finished tasks and removes unused queues. Its cost is linear in the number of due
// changes, and of queues whose finished tasks have changed; it does not depend on the number
// of queues. The caller of each method holds the lock of the machine.
type maintainer struct {
	attempts    *attempts
	cfg         *Config
	clock       *clock
	deps        *dependencies
	holds       *holds
	journal     *journal.Journal
	keyRates    *keyRates
	scans       *scans
	queues      *queueSet
	rows        *taskRows
	settings    *settingSet
	states      *stateIndex
	tasks       *tasks
	total       *total
	transitions *transitions
	uniqueNames *uniqueNames
	watchers    *watchers

	swept int // the number of the queue that removeUnused has looked at last
}

// maintain makes at most limit changes, and fewer if the step has read and written as much as
// it may. at is when the next change is due, 0 if none is; left is limit less the changes made.
// If more is set there may be more changes to make now, and at is now.
func (n *maintainer) maintain(limit int) (at int64, left int, more bool) {
	n.keyRates.unblock()
	n.total.expire()
	for n.mayChange(limit) && n.journal.Failed() == nil && n.taskDue() {
		limit--
	}
	for limit > 0 && n.uniqueNames.expire() {
		limit--
	}
	if n.mayChange(limit) {
		at, limit = n.finishedTasks(limit)
	}
	if more = !n.mayChange(limit); more {
		at = n.clock.now
	} else {
		for _, h := range []*heap[*task]{&n.states.due, &n.states.leases, &n.states.deadlines} {
			if e, ok := h.first(); ok {
				at = earliest(at, e.rank)
			}
		}
		if e, ok := n.uniqueNames.ends.first(); ok {
			at = earliest(at, e.rank)
		}
		if e, ok := n.keyRates.byTime.first(); ok {
			at = earliest(at, e.rank)
		}
		if next := n.total.expire(); next > 0 {
			at = earliest(at, next)
		}
		n.removeUnused()
	}
	return at, limit, more
}

// mayChange reports whether this step may make a change, of which limit are left.
func (n *maintainer) mayChange(limit int) bool { return limit > 0 && !n.scans.full() }

// taskDue makes the earliest due change of delays, leases and deadlines, and reports
// whether there was one.
func (n *maintainer) taskDue() bool {
	at, do, due := n.clock.now, (func(*task))(nil), (*task)(nil)
	for _, of := range []struct {
		heap *heap[*task]
		do   func(*task)
	}{{&n.states.due, n.dueNow}, {&n.states.leases, n.endLease}, {&n.states.deadlines, n.transitions.expire}} {
		if e, ok := of.heap.first(); ok && (e.rank < at || e.rank == at && due == nil) {
			at, do, due = e.rank, of.do, e.of
		}
	}
	if due == nil {
		return false
	}
	do(due)
	n.scans.advance()
	return true
}

// finishedTasks forgets finished tasks that retention no longer keeps, in the order of the times
// at which it stops keeping them. It looks only at queues for which that time has come, or may
// have changed. next is when the next task is to be forgotten, 0 if none is; left is limit less
// the tasks forgotten.
func (n *maintainer) finishedTasks(limit int) (next int64, left int) {
	for e, ok := n.queues.forgetting.first(); ok; e, ok = n.queues.forgetting.first() {
		t, at := n.nextToForget(e.of)
		switch {
		case t == nil:
			n.queues.forgetting.remove(e.of)
		case at != e.rank: // queueSet.review has set it, or an earlier task has gone
			n.queues.forgetting.set(e.of, at)
		case at > n.clock.now, !n.mayChange(limit):
			return at, limit
		default:
			limit--
			if !n.deps.pin(t) && !n.forgetExpired(t, cause{on: queue.OnForget}) {
				return n.clock.after(awayInterval), limit
			}
			n.scans.advance()
		}
	}
	return 0, limit
}

// nextToForget returns the finished task of a queue that retention stops keeping first, and when
// it does; nil if the queue has none.
func (n *maintainer) nextToForget(q *queueState) (first *task, at int64) {
	for _, of := range []queue.State{queue.Succeeded, queue.Dead} {
		ends := q.finishedList(of)
		if ends.n == 0 {
			continue
		}
		t, r := n.tasks.at(ends.first), q.retention(of)
		until := t.at + int64(r.Age)
		if until > n.clock.away.from && until <= n.clock.away.to {
			until = n.clock.away.to + int64(keepReopened)
		}
		if ends.n > r.Count {
			until = t.at
		}
		if first == nil || until < at {
			first, at = t, until
		}
	}
	return first, at
}

// forgetExpired forgets a task that retention no longer keeps. It reads the row of the
// task only if the task has a unique name or there is a watcher. A task whose row cannot be
// read is forgotten too, but not if no row can be read at present: it reports false then.
func (n *maintainer) forgetExpired(t *task, w cause) (done bool) {
	if !n.watchers.any() && !t.unique {
		n.transitions.drop(t, w)
		return true
	}
	row, err := n.rows.readable(t)
	if errors.Is(err, journal.ErrAway) {
		return false
	}
	n.transitions.forget(t, &row, w)
	n.uniqueNames.keep(&row)
	return true
}

// endLease ends the lease of a task whose time is over. A transaction may have settled the
// attempt if there is no fence: then endLease looks again later.
func (n *maintainer) endLease(t *task) {
	if n.cfg.Fence && t.lease.remote && !t.lease.fenced {
		n.states.extend(t, fencePause)
		return
	}
	n.attempts.lose(t)
}

// dueNow makes a Scheduled task whose time has come Waiting or Held, or tries to repair a
// task in quarantine.
func (n *maintainer) dueNow(t *task) {
	if t.damaged() {
		n.holds.repair(t)
	} else {
		n.transitions.revise(t, n.transitions.pending(t, 0), cause{on: queue.OnDue})
	}
}

// removeUnused looks at the next maxSwept queues. It removes those that are unused, and the kinds
// that others no longer need.
func (n *maintainer) removeUnused() {
	numbered := n.queues.numbered
	for range min(len(numbered), maxSwept) {
		n.swept = (n.swept + 1) % len(numbered)
		if q := numbered[n.swept]; q != nil {
			q.forgetKinds()
			n.removeIfUnused(q)
		}
	}
}

// removeIfUnused removes a queue that has not been needed for idleQueueTTL.
func (n *maintainer) removeIfUnused(q *queueState) {
	switch {
	case n.needed(q):
		q.idle = 0
	case q.idle == 0:
		q.idle = n.clock.now
	case n.clock.now-q.idle >= int64(idleQueueTTL):
		n.total.leave(q)
		n.queues.remove(q)
	}
}

// needed reports whether a queue differs from a new queue of its name: whether it has
// tasks, settings, listeners, or starts that count against its rates. ends and
// suspects.end do not count: those changes are durable before any task that is submitted
// later, and so before a later task starts.
func (n *maintainer) needed(q *queueState) bool {
	for _, tasks := range q.states {
		if tasks > 0 {
			return true
		}
	}
	_, set := n.settings.byName[q.name]
	return set || len(q.listeners) > 0 || len(q.keys) > 0 || q.arrival.ns >= n.clock.now
}

// earliest returns the earlier of two times, of which 0 is none.
func earliest(at, other int64) int64 {
	if at == 0 || other > 0 && other < at {
		return other
	}
	return at
}

const (
	// idleQueueTTL is how long an unused queue is kept, with its counts of ended tasks.
	idleQueueTTL = 24 * time.Hour
	// maxSwept limits the queues that a call of Maintain looks at to find unused ones.
	maxSwept = 1000
)
