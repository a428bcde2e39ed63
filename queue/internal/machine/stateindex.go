package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// stateIndex is every task in the place that its state gives it: Waiting ones in the
// order of their queue, Scheduled ones by when they are due, Running ones by the end of
// their lease, finished ones in the list by which they are forgotten, and those that have
// a deadline by that as well. It counts the tasks of each state and tier, takes and
// releases the slots of running tasks, and signals the workers of a queue when a task of
// it may have become claimable. It decides nothing and writes no row: the transitions do.
// The caller of each method holds the lock of the machine.
//
// A task whose row cannot be read is put in quarantine: it is Held, no row says so, and
// all other tasks go on. Its row is tried again now and then, because a disk may recover.
// Its group and the tasks that come after it wait meanwhile, as for any task that is
// held.
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
		s.tasks.append(q.ends(to), t)
	default:
	}
}

// wait puts a task into the order of its queue, and wakes the listeners.
func (s *stateIndex) wait(a queuedTask) {
	s.queueUp(a)
	s.queues.of(a.t).signal()
}

// queueUp puts a task into the order of its queue.
func (s *stateIndex) queueUp(a queuedTask) {
	t := a.t
	q := s.queues.of(t)
	q.tiers[t.tier]++
	class := q.class(a.kind)
	if a.suspect {
		class += ofSuspects
		q.suspects.add(t)
	}
	q.order.Push(&t.place, backlog.Arrival{Tier: int(t.tier), Key: a.key, Class: class, Weight: 1, Ticket: a.seq})
	s.keyTotals.enqueued(q, a.key)
	s.tasks.append(&q.waiting, t)
}

// leave removes a task from the place that its state gives it.
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
		key := t.place.Key()
		q.order.Remove(&t.place)
		s.keyTotals.dequeued(q, key)
		q.suspects.remove(t)
		s.tasks.unlist(&q.waiting, t)
	case queue.Running:
		s.leases.remove(t)
		q.passes++
		s.slots.release(q, t.lease.row.Key)
		if t.lease.suspect {
			q.suspects.running--
		}
		s.leaseLog.end(t.lease)
		t.lease = nil
		q.signal()
	case queue.Succeeded, queue.Dead, queue.Cancelled:
		s.deps.unlistEnded(t)
	default:
	}
	t.state = 0
}

// admit puts the task of a row into the memory, in no state yet.
func (s *stateIndex) admit(row *record.Row) *task {
	t := s.tasks.add(row.ID)
	s.bind(t, row.Queue, uint8(row.Tier-stint.Lowest), row.Unique != "", row.Seq)
	return t
}

// bind gives a task that is new in the memory its queue, its tier and its age.
func (s *stateIndex) bind(t *task, name string, tier uint8, unique bool, seq uint64) {
	t.queueNo, t.tier, t.unique = s.queues.get(name).no, tier, unique
	t.place.SetTicket(seq)
}

// arm makes a task expire at its deadline if it has not started by then.
func (s *stateIndex) arm(t *task, row *record.Row) {
	if !row.Deadline.IsZero() {
		t.more().deadline = unix(row.Deadline)
		s.deadlines.set(t, t.deadline)
	}
}

// start removes a Waiting task of a key from the order of its queue, because it starts.
func (s *stateIndex) start(t *task, key string) {
	q := s.queues.of(t)
	q.order.Start(&t.place)
	s.keyTotals.dequeued(q, key)
	q.suspects.remove(t)
	q.passes = max(q.passes-1, 0)
	s.tasks.unlist(&q.waiting, t)
	q.states[queue.Waiting]--
	q.tiers[t.tier]--
}

// unrun has a running task wait again as its row says, as if it had not been claimed.
func (s *stateIndex) unrun(t *task, row *record.Row) {
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
	s.tasks.restore(&q.waiting, t) // it has waited since then
}

// run puts a task that is in no state into Running, until its lease ends.
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

// extend makes a lease last for d from now on, or longer if it does anyway.
func (s *stateIndex) extend(t *task, d time.Duration) {
	t.at = max(t.at, s.clock.after(d))
	t.lease.row.Lease.Until = timeOf(t.at)
	s.leases.set(t, t.at)
}

// leased returns the running tasks, by their age.
func (s *stateIndex) leased() []*task {
	all := make([]*task, len(s.leases.all))
	for i := range all {
		all[i] = s.leases.all[i].of
	}
	slices.SortFunc(all, func(a, b *task) int { return cmp.Compare(a.lease.row.Seq, b.lease.row.Seq) })
	return all
}

// sortLists sorts the lists of tasks, which came as their rows did, by time.
func (s *stateIndex) sortLists() {
	for _, q := range s.queues.all() {
		for _, of := range []*taskList{&q.waiting, &q.finished[0], &q.finished[1]} {
			s.tasks.sort(of)
		}
	}
}

// quarantine sets an unfinished task aside that is not Running, because its row cannot be
// read.
func (s *stateIndex) quarantine(t *task, err error) {
	if t.damaged() {
		t.damage.err = err
		return
	}
	if s.cfg.Damaged != nil {
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
	s.due.set(t, s.clock.after(tryAgain))
}

// clear ends the quarantine of a task that is in one. The caller removes the task from
// its state.
func (s *stateIndex) clear(t *task) {
	if t.damaged() {
		s.due.remove(t)
		t.damage = nil
		s.queues.of(t).damaged--
	}
}

const (
	// tryAgain is the time after which the row of a task in quarantine is read again.
	tryAgain = time.Minute
	// mostDamaged is how many tasks a claim puts in quarantine: if no row can be read,
	// the disk is the cause.
	mostDamaged = 16
)
