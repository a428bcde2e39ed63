package machine

import (
	"container/list"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// task is what is in memory of a task: what decides when it starts, or, if it is
// finished, when it is forgotten. The rest is in its row.
//
// There may be ten million tasks, so their size is part of what the store promises: what
// only some tasks have is in optional, and what is in the row or in the entry of the
// order is not repeated here.
type task struct {
	// place is in the order of its queue, while it is Waiting. The value is its number, the
	// ticket its age.
	place backlog.Entry[uint32]
	id    queue.ID
	// at is its RunAt if it is Scheduled, the end of its lease if it is Running; otherwise
	// since when it is in its state.
	at int64
	*optional

	// prev and next are the numbers of its neighbours in its list, if it is Waiting or
	// finished. In other states prev is its index in the heap of Scheduled or Running
	// tasks.
	prev, next uint32
	queueNo    uint32      // the number of its queue
	tier       uint8       // from 0
	state      queue.State // Held only by what it waits for itself: dependencies and its group
	unique     bool        // it has a Unique, for which there is a row
}

// optional is what only some tasks have.
type optional struct {
	lease      *lease
	deadline   int64  // by which it has to start,
	expiry     uint32 // and its index in the heap of deadlines; 0: it has none, or has started
	group      *group
	age        uint32 // its index in the heap of its group
	batch      *batch // that it belongs to
	waits      []wait // for the tasks that it comes after
	waitsBatch *batch
	atBatch    *list.Element // among the tasks that wait for waitsBatch
	suspect    *list.Element // among the suspects of its queue, while it is Waiting
	poison     *poisoned     // if it is dead because it has crashed its workers
	damage     *damage       // if its row cannot be read
}

// poisoned is the element of a task among the tasks that have done the same work.
type poisoned struct {
	work fingerprint
	same *list.Element
}

// lease is what is in memory of a running task.
type lease struct {
	row     record.Row  // with its steps, the claim among them
	slot    int         // of the lease log; 0: none
	suspect bool        // another crash makes its task dead
	remote  bool        // it outlives this process
	order   queue.Order // OrderPause or OrderCancel, which its worker has yet to obey
	by      string      // the author of the order,
	reason  string      // and the reason for it
}

func placeInHeap(t *task) *uint32 { return &t.prev }

func placeByDeadline(t *task) *uint32 { return &t.expiry }

func placeInGroup(t *task) *uint32 { return &t.age }

// more returns the optional part of a task, made if there is none.
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

// no returns the number of a task. Lists and indexes have numbers where pointers would
// make the garbage collector look at each task.
func (t *task) no() uint32 { return t.place.Value }

// free reports whether nothing but a limit holds the task.
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

// late reports whether a task has passed its deadline without having started.
func (t *task) late(now int64) bool { return t.optional != nil && t.expiry > 0 && t.deadline <= now }

// damage is why a task is in quarantine.
type damage struct{ err error }

// damaged reports whether a task is in quarantine.
func (t *task) damaged() bool { return t.optional != nil && t.damage != nil }
