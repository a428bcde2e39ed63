package machine

import (
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// task is what is in memory of an unfinished task: what decides when it starts.
// The rest is in its row.
type task struct {
	place backlog.Entry[*task] // in its line's order, while it is Waiting
	id    queue.ID
	line  *line
	key   string
	seq   uint64 // its age: the number of its submission
	kind  int    // the class of its kind in its line
	tier  int    // from 0
	mark  uint64 // the journal's, of its last change
	since int64  // when it became Waiting
	prev  *task  // in the order in which those of its line did
	next  *task
	state queue.State // Held only by what it waits for itself: dependencies and its group

	due    timer // its RunAt or the end of its lease,
	expiry timer // and its Deadline
	*rare
}

// rare is what only some tasks have.
type rare struct {
	lease      *lease
	uniqueName string
	group      *group
	batch      *batch
	waitsFor   map[queue.ID]queue.State // what has to succeed first, and how far it is
	waitsBatch *batch
}

// lease is what is in memory of a running task.
type lease struct {
	row    record.Row // with its steps, the claim among them
	until  int64
	order  queue.Trigger // OnPause or OnCancel, which its worker has yet to obey
	by     string        // who gave it,
	reason string        // and why
}

func (t *task) more() *rare {
	if t.rare == nil {
		t.rare = new(rare)
	}
	return t.rare
}

// leased returns the lease of a running task, nil for others.
func (t *task) leased() *lease {
	if t.rare == nil {
		return nil
	}
	return t.lease
}

// free reports whether nothing holds the task but others' use of limits.
func (t *task) free() bool {
	r := t.rare
	return r == nil || len(r.waitsFor) == 0 && (r.waitsBatch == nil || r.waitsBatch.open == 0) &&
		(r.group == nil || r.group.first() == t)
}

// group is the unfinished tasks of a FIFO group, in the order of submission.
type group struct {
	name  string
	tasks []*task
}

func (g *group) first() *task { return g.tasks[0] }

// batch is what is unfinished of a batch.
type batch struct {
	id      queue.ID
	open    int     // tasks
	waiting []*task // for there to be none
}
