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
// There may be ten millions of them, so its size is part of what the store
// promises: what only some have is in rare, and what its row or its entry in the
// order tells is not here.
type task struct {
	place backlog.Entry[uint32] // in its line's order, while it is Waiting; the value is its number, the ticket its age
	id    queue.ID
	at    int64 // its RunAt if it is Scheduled, the end of its lease if it is Running; else since when it is as it is
	*optional

	// prev and next are its neighbours' numbers in the list of those that are
	// Waiting, or finished, as it is. In other states prev is its place in the heap
	// of those that are Scheduled, or Running.
	prev, next uint32
	queueNo    uint32      // the number of its line
	tier       uint8       // from 0
	state      queue.State // Held only by what it waits for itself: dependencies and its group
	unique     bool        // it has a Unique, for which there is a row
}

// rare is what only some tasks have.
type optional struct {
	lease      *lease
	deadline   int64  // by which it has to start,
	expiry     uint32 // and its place in the heap of those; 0: it has none, or has started
	group      *group
	age        uint32 // its place in its group
	batch      *batch // that it belongs to
	waits      []wait // for the tasks that it comes after
	waitsBatch *batch
	atBatch    *list.Element // among those that wait for that batch
	suspect    *list.Element // among its queue's suspects, while it is Waiting; see suspects.go
	poison     *poisoned     // if it is dead because it has crashed its workers
	damage     *damage       // if its row cannot be read
}

// poisoned is where a task is among those that have done the same work.
type poisoned struct {
	work fingerprint
	same *list.Element
}

// lease is what is in memory of a running task.
type lease struct {
	row     record.Row    // with its steps, the claim among them
	slot    int           // where its start is noted; 0: nowhere
	suspect bool          // another crash makes its task dead
	remote  bool          // it outlives this process
	order   queue.Trigger // OnPause or OnCancel, which its worker has yet to obey
	by      string        // who gave it,
	reason  string        // and why
}

func placeInHeap(t *task) *uint32 { return &t.prev }

func placeByDeadline(t *task) *uint32 { return &t.expiry }

func placeInGroup(t *task) *uint32 { return &t.age }

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

// no is its number, by which it is known where pointers would have the garbage
// collector look at each.
func (t *task) no() uint32 { return t.place.Value }

// free reports whether nothing holds the task but others' use of limits.
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

// waiting are the waits of a task for others.
func (t *task) waiting() []wait {
	if t.optional == nil {
		return nil
	}
	return t.waits
}

// late reports whether a task has passed its deadline without having started.
func (t *task) late(now int64) bool { return t.optional != nil && t.expiry > 0 && t.deadline <= now }

// damage is why a task is set aside.
type damage struct{ err error }

// damaged reports whether a task is set aside.
func (t *task) damaged() bool { return t.optional != nil && t.damage != nil }
