package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// claimer starts tasks for workers. It picks the next task by the policy of the queue,
// its limits and its rates, and gives it a new token and a lease. It undoes starts that
// could not be recorded in the lease log. The caller of each method holds the lock of
// the machine.
type claimer struct {
	attempts    *attempts
	clock       *clock
	counters    *counters
	holds       *holds
	journal     *journal.Journal
	keyRates    *keyRates
	leaseLog    *leaseLog
	scans       *scans
	prefetch    *prefetch
	queues      *queueSet
	rows        *taskRows
	slots       *slots
	states      *stateIndex
	tasks       *tasks
	total       *total
	transitions *transitions
	views       *views
	watchers    *watchers
	workerSet   *workerSet

	classes []int // of the present claim
}

// claim starts tasks. It returns an error only if no task has started: otherwise it
// returns the started tasks, and a signal makes the workers claim again.
func (g *claimer) claim(c queue.Claim) (got granted, err error) {
	g.workerSet.see(c.Worker, c.Queue, c.Kinds)
	g.total.expire()
	q := g.queues.byName[c.Queue]
	if q == nil {
		return got, nil
	}
	defer g.total.yield(q)
	if q.settings.Paused != nil {
		return got, nil
	}
	g.keyRates.unblock()
	g.classes = q.classes(g.classes[:0], c.Kinds)
	got.left = newAllowance(c.Max, c.Bytes)
	for got.left.any() && err == nil {
		var t *task
		if t, got.Next = g.next(q, g.classes); t == nil {
			got.more = got.Next.Equal(g.clock.time())
			break
		}
		suspect := t.isSuspect()
		if err = g.grant(t, &c, &got); suspect {
			g.classes = q.classes(g.classes[:0], c.Kinds) // without the classes of suspects, which are held now
		}
	}
	if len(got.Tasks) > 0 && err != nil {
		err = nil // the next claim meets it again
		q.signal()
	}
	switch {
	case got.left.tasks > 0 && got.left.bytes <= 0:
		got.Next = g.clock.time() // the answer is full
	case got.left.tasks > 0 && got.Next.IsZero():
		got.Next = q.nextKey(g.classes)
	}
	return got, cmp.Or(g.journal.Failed(), err)
}

// next returns the next task of a queue, nil if there is none, and the time at which to
// call next again: when the rate of the queue allows a start, or now if this step has
// reached its limit of expired tasks.
func (g *claimer) next(q *queueState, classes []int) (t *task, at time.Time) {
	for g.journal.Failed() == nil { // otherwise a task whose transition is not written would be next for ever
		e := q.order.PeekOf(q.running, classes)
		if e != nil {
			t = g.tasks.at(e.Value)
		}
		switch {
		case e == nil && q.turns > 0:
			// A task that ended and let none start gives the policy a turn as well:
			// otherwise a tier over its cap would wait as long as tasks of other tiers
			// keep q.running up.
			q.turns--
			q.order.PassOf(q.running, classes)
		case e == nil:
			return nil, at
		case t.late(g.clock.now) && g.scans.spent():
			return nil, g.clock.time()
		case t.late(g.clock.now):
			g.scans.spend()
			g.transitions.expire(t)
			g.scans.advance()
		case !t.free() && g.scans.spent():
			q.signal()
			return nil, at
		case !t.free():
			g.holds.hold(t)
		case q.limits.rate.limited() && q.limits.rate.from(q.arrival) > g.clock.now:
			return nil, timeOf(q.limits.rate.from(q.arrival))
		case !g.total.mayStart(q):
			return nil, g.total.refuse(q)
		default:
			return t, at
		}
	}
	return nil, at
}

// grant starts a task for a claim, or puts it in quarantine if its row cannot be read.
func (g *claimer) grant(t *task, c *queue.Claim, got *granted) error {
	held := new(lease)
	written, err := g.prefetch.readStarting(t, &held.row)
	if err != nil {
		g.states.quarantine(t, err)
		if got.damaged++; got.damaged < maxQuarantined && !errors.Is(err, journal.ErrAway) {
			return nil
		}
		return err
	}
	e := LeaseEntry{ID: t.id, Seq: held.row.Seq, Token: g.counters.nextToken(), At: g.clock.time(), Worker: c.Worker}
	if c.Remote {
		e.Remote = c.Lease
	}
	if held.slot, err = g.leaseLog.reserve(e.Token); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	q := g.queues.of(t)
	limited := g.limitMark(t, q, held.row.Key)
	g.start(t, held, e, c.Lease)
	if got.Tasks == nil { // an estimate: limits may leave fewer tasks
		likely := min(c.Max, 1+q.waiting.n, maxInitialTasks)
		got.Tasks, got.entries = make([]queue.Task, 0, likely), make([]SlotEntry, 0, likely)
	}
	got.Tasks = append(got.Tasks, g.views.view(t, &held.row))
	got.left.take(&got.Tasks[len(got.Tasks)-1])
	if held.slot > 0 {
		got.entries = append(got.entries, SlotEntry{held.slot, e})
	}
	got.mark = max(got.mark, written, limited)
	if held.suspect { // otherwise its crash could count as one of the previous suspect too
		got.mark = max(got.mark, q.suspects.end)
	}
	return nil
}

// limitMark returns the mark that has to be durable before a worker may get t, the next task of
// q: if a limit allows t to start only because other leases have ended, the mark of the last of
// these ends; else 0. A crash before that would bring an ended lease back, and more tasks would
// run than the limit allows.
func (g *claimer) limitMark(t *task, q *queueState, key string) (mark uint64) {
	if q.ends.none() && g.slots.ends.none() {
		return 0
	}
	durable := g.journal.Durable()
	if n := q.ends.after(durable); n > 0 {
		if q.order.PeekOf(q.running+n, g.classes) != &t.entry {
			mark = q.ends.last()
		}
		keys := q.order.Keys()
		mark = max(mark, q.ends.keyMark(key, keys.Running(key), keys.Limit(key)))
	}
	return max(mark, g.slots.limitMark(key, durable))
}

// start moves a task from the order of its queue to Running, and counts it against rates.
func (g *claimer) start(t *task, held *lease, e LeaseEntry, length time.Duration) {
	q := g.queues.of(t)
	g.states.start(t, held.row.Key)
	g.transitions.claimed(q, &held.row, e, g.clock.time())
	g.states.run(t, held, g.clock.after(length))
	q.lastStart = e.Token
	if q.limits.rate.limited() {
		q.arrival = q.limits.rate.spend(q.arrival, g.clock.now)
	}
	g.keyRates.spend(q, held.row.Key)
}

// takeBack undoes the starts of tasks, the last one first, as unspend requires. signal
// wakes the workers of their queues.
func (g *claimer) takeBack(claimed []queue.Task, signal bool) {
	for i := range slices.Backward(claimed) {
		t, token := g.tasks.get(claimed[i].ID), claimed[i].Lease.Token
		if t == nil || t.leased() == nil || t.lease.row.Lease.Token != token {
			continue
		}
		var row record.Row
		if slot := t.lease.slot; g.untouched(t, &row) {
			g.putBack(t, &row)
			if slot > 0 {
				g.leaseLog.free([]freedSlot{{slot, token}})
			}
		} else {
			g.attempts.release(t, "its lease could not be recorded")
		}
		if signal {
			g.queues.of(t).signal()
		}
	}
}

// untouched reads the row of a task as it was before the claim, and reports whether the
// task can be put back: since the claim its row has not been written, its worker was
// given no order, and no older task of its group has been retried.
func (g *claimer) untouched(t *task, row *record.Row) bool {
	if t.lease.order != 0 {
		return false
	}
	if t.group != nil {
		if oldest, _ := t.group.byAge.first(); oldest.of != t {
			return false
		}
	}
	return g.rows.read(t, row) == nil && row.State == queue.Waiting // any other state was written after the claim
}

// putBack makes a running task Waiting again as its row says, as if it had not been
// claimed. It adds no step, but sends an event to the watchers, which have received the
// claim.
func (g *claimer) putBack(t *task, row *record.Row) {
	q, held := g.queues.of(t), t.lease
	w := queue.Step{
		At: g.clock.time(), On: queue.OnRelease, To: queue.Waiting, By: held.row.Lease.Worker,
		Token: held.row.Lease.Token, Detail: "its lease could not be recorded",
	}
	g.watchers.send(queue.Event{ID: t.id, Queue: row.Queue, Kind: row.Kind, From: queue.Running, Step: w})
	g.states.undoStart(t, row)
	g.unspend(q, row.Key, w.Token)
}

// unspend uncounts a start against rates, if it is the last start of its queue. If there
// was a later start, it may already have used the idle time that the first one would give
// back. If a rate has changed since, unspend gives at most a full burst.
func (g *claimer) unspend(q *queueState, key string, token queue.Token) {
	if q.lastStart != token {
		return
	}
	q.lastStart-- // the previous start of the same claim, or no start
	q.arrival = q.limits.rate.unspend(q.arrival)
	g.keyRates.unspend(q, key)
}

// granted is the result of a claim so far.
type granted struct {
	queue.Claimed
	more    bool        // other tasks may be able to start now; Next is the present time
	entries []SlotEntry // of the lease log, for the leases of Tasks
	mark    uint64      // the journal's mark that must be durable before the claim returns
	damaged int         // tasks that were put in quarantine
	left    allowance   // what the answer may still take
}

// maxInitialTasks limits the initial capacity, in tasks, of the answer to a claim.
const maxInitialTasks = 64
