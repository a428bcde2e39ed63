package machine

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// finder finds the tasks that a filter describes, in the order of their IDs. The memory
// answers for most fields; only a filter with other fields has rows read. It changes
// nothing. sift needs no lock; the caller of every other method holds the lock of the
// machine.
type finder struct {
	journal *journal.Journal
	queues  *queueSet
	rows    *taskRows
	tasks   *tasks
	views   *views
}

// look finds the next candidates of a search by what is in memory.
func (d *finder) look(s *search) {
	s.ids = s.ids[:0]
	looked := 0
	s.done = d.tasks.ids.from(s.after, s.down, func(no uint32) bool {
		t := d.tasks.at(no)
		s.after = t.id
		if d.mayMatch(s, t) {
			s.ids = append(s.ids, t.id)
		}
		looked++
		return looked < partLooked && len(s.ids) < s.most
	})
}

// mayMatch reports whether a task is a candidate by what is in memory.
func (d *finder) mayMatch(s *search, t *task) bool {
	if !s.ending.of(&t.id) || !concerns(s.do, t) {
		return false
	}
	f := &s.filter
	return (f.Queue == "" || f.Queue == d.queues.of(t).name) &&
		(f.Worker == "" || t.state == queue.Running && t.lease.row.Lease.Worker == f.Worker) &&
		(len(f.States) == 0 || slices.Contains(f.States, d.views.stateOf(t)))
}

// match returns a task if the search describes it. The error is that of a row which would
// have to be read.
func (d *finder) match(s *search, id queue.ID) (f finding, err error) {
	t := d.tasks.get(id)
	if t == nil || !d.mayMatch(s, t) {
		return f, nil
	}
	f = finding{id: id, task: t}
	if s.asksRows() {
		row, err := d.rows.row(t)
		if err != nil || !s.matches(&row) {
			return finding{}, err
		}
		f.row = &row
	}
	return f, nil
}

// sift removes candidates that the filter does not describe, as their rows are at this
// moment. It needs no lock.
func (d *finder) sift(s *search) {
	if !s.asksRows() {
		return
	}
	s.ids = slices.DeleteFunc(s.ids, func(id queue.ID) bool {
		value, getErr := d.journal.Get(taskRow(&id))
		if getErr != nil || value == nil { // it has been forgotten, or is reported where its row is needed
			return getErr == nil
		}
		row, decodeErr := record.Decode(value)
		return decodeErr == nil && !s.matches(&row)
	})
}

// concerns reports whether a command, or 0 for a question, may be about a task. A command
// forgets tasks that were finished before, and not those that are cancelled because
// another one is forgotten.
func concerns(do queue.Order, t *task) bool {
	switch do {
	case queue.OrderForget:
		return t.state.Finished()
	case 0, queue.OrderRetry:
		return true
	default:
		return !t.state.Finished()
	}
}

// search goes through the tasks that a filter may describe, in the order of their IDs, in
// parts. The lock is held for one part at a time, and not while rows are read to drop
// candidates.
type search struct {
	filter queue.Filter
	do     queue.Order // only what this command concerns, if it is one
	ending ending      // of the filter
	named  []queue.ID  // what is left of the filter's IDs, if they are not nil
	after  queue.ID    // how far it has come
	down   bool
	done   bool
	ids    []queue.ID // what the last part has found
	most   int        // tasks that a part may find
}

// A part is so many tasks that may be found, of so many that were looked at. One of
// a command is smaller: it reads the rows with the lock, and writes them.
const (
	partFound   = 1000
	partCommand = 200
	partLooked  = 10_000
)

func newSearch(f queue.Filter, after queue.ID, down bool) *search {
	s := &search{filter: f, ending: parseEnding(f.Ending), after: after, down: down, most: partFound}
	if f.IDs == nil {
		return s
	}
	s.named = slices.Clone(f.IDs)
	slices.SortFunc(s.named, func(a, b queue.ID) int {
		if down {
			a, b = b, a
		}
		return bytes.Compare(a[:], b[:])
	})
	s.named = slices.DeleteFunc(slices.Compact(s.named), func(id queue.ID) bool {
		order := bytes.Compare(id[:], after[:])
		return !after.IsZero() && (order == 0 || order < 0 != down)
	})
	return s
}

// asksRows reports whether rows have to be read to decide whether a task matches. The row
// of a running task is in memory.
func (s *search) asksRows() bool {
	f := &s.filter
	return f.Kind != "" || f.Key != "" || f.Group != "" || !f.Batch.IsZero() || len(f.Labels) > 0 ||
		!f.From.IsZero() || !f.To.IsZero() || f.Error != ""
}

// finding is a task that is searched for, with its row if that has been read.
type finding struct {
	id queue.ID
	*task
	row *record.Row
}

// mostKept is the number of bytes of rows that a part of a search keeps; the rows of
// further tasks are read again.
const mostKept = 1 << 20

// within returns the finding, without its row if there is no room for the row.
func (f finding) within(room *int) finding {
	if f.row == nil {
		return f
	}
	if *room -= len(f.row.Payload) + len(f.row.Checkpoint) + len(f.row.Result); *room < 0 {
		f.row = nil
	}
	return f
}

// matches reports whether a filter describes a task by its row.
func (s *search) matches(row *record.Row) bool {
	f := &s.filter
	switch {
	case f.Kind != "" && f.Kind != row.Kind,
		f.Key != "" && f.Key != row.Key,
		f.Group != "" && f.Group != row.Group,
		!f.Batch.IsZero() && f.Batch != row.Batch,
		!f.From.IsZero() && row.Submitted.Before(f.From),
		!f.To.IsZero() && !row.Submitted.Before(f.To),
		!strings.Contains(row.Error, f.Error):
		return false
	}
	for name, value := range f.Labels {
		if got, ok := row.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}
