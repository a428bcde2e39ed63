package machine

import (
	"container/list"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// task is the part of a task that is in memory: the fields that decide when it starts or,
// if it is finished, when it is forgotten. The other fields are in its row.
//
// A store may have ten million tasks, and guarantees their size in memory. So fields that
// only some tasks have are in optional, and nothing that the row or the backlog entry has
// is repeated here.
type task struct {
	// entry is in the order of its queue, while it is Waiting. The value is its number, the
	// ticket its age.
	entry backlog.Entry[uint32]
	id    queue.ID
	// at is RunAt if the task is Scheduled, the end of its lease if it is Running, and the
	// time of its last transition in any other state.
	at int64
	*optional

	// prev and next are the numbers of the neighbours in its list, if the task is Waiting
	// or finished. In other states prev is its index in the heap of due times or leases.
	prev, next uint32
	queueNo    uint32      // the number of its queue
	tier       uint8       // from 0
	state      queue.State // Held only for dependencies, the group or quarantine: see views
	unique     bool        // it has a Unique, and a row for it
}

// optional is the fields that only some tasks have.
type optional struct {
	lease      *lease
	deadline   int64  // the time by which it has to start
	expiry     uint32 // the index in the heap of deadlines; 0: no deadline, or it has started
	group      *group
	age        uint32        // the index in group.byAge
	batch      *batch        // the batch that it belongs to
	waits      []wait        // for the tasks that it comes after
	waitsBatch *batch        // the batch that it comes after
	atBatch    *list.Element // in waitsBatch.waiting
	suspect    *list.Element // in suspects.waiting, while it is a Waiting suspect
	poison     *poisoned     // set if it is a poison task; see fingerprints
	damage     *damage       // set if it is in quarantine
}

// poisoned is the fingerprint of a poison task, and its element in fingerprints.byWork.
type poisoned struct {
	work fingerprint
	same *list.Element
}

// lease is the part of a running task that is in memory.
type lease struct {
	row     record.Row  // with its steps, the claim among them
	slot    int         // of the lease log; 0: none
	suspect bool        // another crash makes its task dead
	remote  bool        // it outlives this process
	fenced  bool        // no transaction settles the attempt any more; see txoutcomes.go
	order   queue.Order // OrderPause or OrderCancel, until the attempt ends; 0: no order
	by      string      // the author of the order,
	reason  string      // and the reason for it
}

func indexByTime(t *task) *uint32 { return &t.prev }

func indexByDeadline(t *task) *uint32 { return &t.expiry }

func indexInGroup(t *task) *uint32 { return &t.age }

// more returns the optional part of a task, and adds one if there is none.
func (t *task) more() *optional {
	if t.optional == nil {
		t.optional = new(optional)
	}
	return t.optional
}

// leased returns the lease of a running task, nil for others.
func (t *task) leased() *lease {
	if t.optional == nil {
		return nil
	}
	return t.lease
}

// no returns the number of a task. Lists and indexes store numbers, because pointers
// would make the garbage collector visit each task.
func (t *task) no() uint32 { return t.entry.Value }

// free reports whether no dependency, group or quarantine holds the task.
func (t *task) free() bool {
	r := t.optional
	if r == nil {
		return true
	}
	for i := range r.waits {
		if r.waits[i].holds() {
			return false
		}
	}
	return r.damage == nil && (r.waitsBatch == nil || r.waitsBatch.open == 0) && (r.group == nil || r.group.first() == t)
}

// waiting returns the waits of a task for others.
func (t *task) waiting() []wait {
	if t.optional == nil {
		return nil
	}
	return t.waits
}

// late reports whether a task has not started by its deadline.
func (t *task) late(now int64) bool { return t.optional != nil && t.expiry > 0 && t.deadline <= now }

// damage is why a task is in quarantine.
type damage struct{ err error }

// damaged reports whether a task is in quarantine.
func (t *task) damaged() bool { return t.optional != nil && t.damage != nil }
