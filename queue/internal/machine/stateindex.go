package machine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// stateIndex indexes tasks by their states: Waiting tasks in the order of their queue,
// Scheduled tasks by RunAt, Running tasks by the end of their lease, finished tasks in
// the list from which retention forgets, and tasks with a deadline by that as well. It
// counts the tasks of each state and tier, takes and releases the slots of running
// tasks, and signals the workers of a queue when a task may have become claimable. It
// writes no row: transitions does. The caller of each method holds the lock of the
// machine.
//
// A task whose row cannot be read is put in quarantine: it is Held in memory only, and
// all other tasks are unaffected, except that its group and its successors wait, as for
// any held task. Its row is read again every rereadInterval, because a disk may
// recover.
type stateIndex struct {
	cfg       *Config
	clock     *clock
	deps      *dependencies
	keyTotals *keyTotals
	leaseLog  *leaseLog
	queues    *queueSet
	slots     *slots
	tasks     *tasks

	due       heap[*task] // Scheduled tasks, and tasks in quarantine
	leases    heap[*task] // Running tasks, by the end of their lease
	deadlines heap[*task] // tasks that have a deadline and have not started
}

// enter puts a task that is in no state into one.
func (s *stateIndex) enter(t *task, row *record.Row, to queue.State) {
	q := s.queues.of(t)
	t.state, t.at = to, unix(row.Changed)
	q.states[to]++
	switch to {
	case queue.Scheduled:
		t.at = unix(row.RunAt)
		s.due.set(t, t.at)
	case queue.Held:
		q.tiers[t.tier]++
	case queue.Waiting:
		s.wait(queuedTask{t, row.Key, row.Kind, row.Seq, suspected(row)})
	case queue.Succeeded, queue.Dead, queue.Cancelled:
		s.tasks.append(q.finishedList(to), t)
		s.queues.review(q)
	default:
	}
}

// wait puts a Waiting task into the order of its queue, and signals the workers.
func (s *stateIndex) wait(a queuedTask) {
	s.queueUp(a)
	s.queues.of(a.t).signal()
}

// queueUp is wait without the signal.
func (s *stateIndex) queueUp(a queuedTask) {
	t := a.t
	q := s.queues.of(t)
	q.tiers[t.tier]++
	class := q.class(a.kind)
	if a.suspect {
		class += ofSuspects
		q.suspects.add(t)
	}
	q.order.PushAt(&t.entry, backlog.Arrival{Tier: int8(t.tier), Key: a.key, Class: int32(class), Weight: 1}, a.seq)
	s.keyTotals.enqueued(q, a.key)
	s.tasks.append(&q.waiting, t)
}

// leave removes a task from the index of its state.
func (s *stateIndex) leave(t *task) {
	q := s.queues.of(t)
	q.states[t.state]--
	switch t.state {
	case queue.Scheduled:
		s.due.remove(t)
	case queue.Held:
		q.tiers[t.tier]--
		s.clear(t)
	case queue.Waiting:
		q.tiers[t.tier]--
		key := t.entry.Key()
		q.order.Remove(&t.entry)
		s.keyTotals.dequeued(q, key)
		q.suspects.remove(t)
		s.tasks.unlist(&q.waiting, t)
	case queue.Running:
		s.leases.remove(t)
		q.turns++
		s.slots.release(q, t.lease.row.Key)
		if t.lease.suspect {
			q.suspects.running--
		}
		s.leaseLog.end(t.lease)
		t.lease = nil
		if q.order.Len() > 0 { // its slot is for one of them
			q.signal()
		}
	case queue.Succeeded, queue.Dead, queue.Cancelled:
		s.deps.unlistEnded(t)
	default:
	}
	t.state = 0
}

// admit adds the task of a row to the memory, in no state yet.
func (s *stateIndex) admit(row *record.Row) *task {
	t := s.tasks.add(row.ID)
	s.bind(t, row.Queue, uint8(row.Tier-stint.Lowest), row.Unique != "", row.Seq)
	return t
}

// bind sets the queue, the tier and the age of a task that is new in memory.
func (s *stateIndex) bind(t *task, name string, tier uint8, unique bool, seq uint64) {
	t.queueNo, t.tier, t.unique = s.queues.get(name).no, tier, unique
	t.entry.SetTicket(seq)
}

// arm makes a task expire at its deadline, if it has one.
func (s *stateIndex) arm(t *task, row *record.Row) {
	if !row.Deadline.IsZero() {
		t.more().deadline = unix(row.Deadline)
		s.deadlines.set(t, t.deadline)
	}
}

// start removes a task that starts from the order of its queue.
func (s *stateIndex) start(t *task, key string) {
	q := s.queues.of(t)
	q.order.Start(&t.entry)
	s.keyTotals.dequeued(q, key)
	q.suspects.remove(t)
	q.turns = max(q.turns-1, 0)
	s.tasks.unlist(&q.waiting, t)
	q.states[queue.Waiting]--
	q.tiers[t.tier]--
}

// undoStart makes a running task Waiting again as its row says, as if it had not been
// claimed.
func (s *stateIndex) undoStart(t *task, row *record.Row) {
	q := s.queues.of(t)
	s.leases.remove(t)
	q.states[queue.Running]--
	s.slots.release(q, row.Key)
	if t.lease.suspect {
		q.suspects.running--
	}
	t.lease = nil
	if t.group != nil {
		t.group.running = nil
	}
	s.arm(t, row)
	t.state, t.at = queue.Waiting, unix(row.Changed)
	q.states[queue.Waiting]++
	s.queueUp(queuedTask{t, row.Key, row.Kind, row.Seq, suspected(row)})
	s.tasks.unlist(&q.waiting, t)
	s.tasks.restore(&q.waiting, t) // at the place of row.Changed
}

// run makes a task that is in no state Running, with a lease until the given time.
func (s *stateIndex) run(t *task, held *lease, until int64) {
	q := s.queues.of(t)
	q.states[queue.Running]++
	s.slots.take(q, held.row.Key)
	held.remote = held.row.Remote > 0
	if held.suspect = suspected(&held.row); held.suspect {
		q.suspects.running++
	}
	t.state, t.at = queue.Running, until
	t.more().lease = held
	held.row.Lease.Until = timeOf(until)
	s.leases.set(t, until)
	s.deadlines.remove(t) // it has started in time
	if t.group != nil {
		t.group.running = t
	}
}

// extend moves the end of a lease to d from now, unless it is later already.
func (s *stateIndex) extend(t *task, d time.Duration) {
	t.at = max(t.at, s.clock.after(d))
	t.lease.row.Lease.Until = timeOf(t.at)
	s.leases.set(t, t.at)
}

// leased returns the running tasks in the order of their ages.
func (s *stateIndex) leased() []*task {
	all := make([]*task, len(s.leases.all))
	for i := range all {
		all[i] = s.leases.all[i].of
	}
	slices.SortFunc(all, func(a, b *task) int { return cmp.Compare(a.lease.row.Seq, b.lease.row.Seq) })
	return all
}

// sortLists sorts the lists of Waiting and finished tasks by time, after rows were loaded
// in the order of their IDs or times were corrected.
func (s *stateIndex) sortLists() {
	for _, q := range s.queues.all() {
		for _, of := range []*taskList{&q.waiting, &q.finished[0], &q.finished[1]} {
			s.tasks.sort(of)
		}
		s.queues.review(q)
	}
}

// quarantine puts an unfinished task that is not Running in quarantine, because its row
// cannot be read. If no row can be read at present, nothing is reported.
func (s *stateIndex) quarantine(t *task, err error) {
	if t.damaged() {
		t.damage.err = err
		return
	}
	if s.cfg.Damaged != nil && !errors.Is(err, journal.ErrAway) {
		s.cfg.Damaged(t.id, err)
	}
	q := s.queues.of(t)
	s.leave(t)
	t.more().damage = &damage{err}
	s.deadlines.remove(t)
	t.state = queue.Held
	q.states[queue.Held]++
	q.tiers[t.tier]++
	q.damaged++
	s.due.set(t, s.clock.after(rereadAfter(err)))
}

// rereadAfter returns the time until the row of a task in quarantine is read again.
func rereadAfter(err error) time.Duration {
	if errors.Is(err, journal.ErrAway) {
		return awayInterval
	}
	return rereadInterval
}

// clear ends the quarantine of a task, if it is in quarantine. The caller moves the
// task to another state.
func (s *stateIndex) clear(t *task) {
	if t.damaged() {
		s.due.remove(t)
		t.damage = nil
		s.queues.of(t).damaged--
	}
}

const (
	// rereadInterval is the time between two reads of the row of a task in quarantine.
	rereadInterval = time.Minute
	// awayInterval is that time if no row could be read.
	awayInterval = time.Second
	// maxQuarantined limits the tasks that one claim puts in quarantine: if so many rows
	// in succession cannot be read, the disk is the cause, not the rows.
	maxQuarantined = 16
)
