package machine

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// finder finds the tasks that match a filter, in the order of their IDs. Rows are read
// only for fields of the filter that are not in memory: see asksRows. It changes
// nothing. dropMismatches needs no lock; the caller of every other method holds the
// lock of the machine.
type finder struct {
	journal *journal.Journal
	queues  *queueSet
	rows    *taskRows
	tasks   *tasks
	views   *views
}

// nextCandidates finds the next candidates of a search, by the fields in memory.
func (d *finder) nextCandidates(s *search) {
	s.ids = s.ids[:0]
	looked := 0
	s.done = d.tasks.ids.from(s.after, s.down, func(no uint32) bool {
		t := d.tasks.at(no)
		s.after = t.id
		if d.mayMatch(s, t) {
			s.ids = append(s.ids, t.id)
		}
		looked++
		return looked < maxLookedAt && len(s.ids) < s.most
	})
}

// mayMatch reports whether a task matches, as far as the fields in memory show.
func (d *finder) mayMatch(s *search, t *task) bool {
	if !s.ending.of(&t.id) || !concerns(s.do, t) {
		return false
	}
	f := &s.filter
	return (f.Queue == "" || f.Queue == d.queues.of(t).name) &&
		(f.Worker == "" || t.state == queue.Running && t.lease.row.Lease.Worker == f.Worker) &&
		(len(f.States) == 0 || slices.Contains(f.States, d.views.stateOf(t)))
}

// match returns the task with an ID if it matches the search. The error is that of
// reading its row.
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

// dropMismatches removes candidates whose rows, as they are now, do not match. It needs
// no lock.
func (d *finder) dropMismatches(s *search) {
	if !s.asksRows() {
		return
	}
	s.ids = slices.DeleteFunc(s.ids, func(id queue.ID) bool {
		value, getErr := d.journal.Get(taskRow(&id))
		if getErr != nil || value == nil { // forgotten: drop it; unreadable: keep it, match returns the error
			return getErr == nil
		}
		row, decodeErr := record.Decode(value)
		return decodeErr == nil && !s.matches(&row)
	})
}

// concerns reports whether a command may change a task in its present state; 0 stands for
// Find, which concerns all tasks. OrderForget concerns only tasks that are finished
// already: the command must not forget tasks that its own cascades cancel.
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

// search is the progress of a search through the tasks in the order of their IDs. It is
// made in parts: the lock is held for one part at a time, and not while dropMismatches
// reads rows.
type search struct {
	filter queue.Filter
	do     queue.Order // the command that searches; 0: Find
	ending ending      // of the filter
	named  []queue.ID  // the IDs of the filter that are left to look up, if it has IDs
	after  queue.ID    // the last ID that was looked at; zero before the first part
	down   bool        // in descending order
	done   bool        // there are no more candidates
	ids    []queue.ID  // the candidates that the last part has found
	most   int         // the limit of ids
}

// The limits of one part of a search, in tasks. A part of a command is smaller, because
// it reads and writes the rows while the lock is held.
const (
	maxFound          = 1000
	maxFoundByCommand = 200
	maxLookedAt       = 10_000
)

func newSearch(f queue.Filter, after queue.ID, down bool) *search {
	s := &search{filter: f, ending: parseEnding(f.Ending), after: after, down: down, most: maxFound}
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

// asksRows reports whether the filter has fields that only rows have. The row of a
// running task is in memory.
func (s *search) asksRows() bool {
	f := &s.filter
	return f.Kind != "" || f.Key != "" || f.Group != "" || !f.Batch.IsZero() || len(f.Labels) > 0 ||
		!f.From.IsZero() || !f.To.IsZero() || f.Error != ""
}

// finding is a task that matches, with its row if that has been read.
type finding struct {
	id queue.ID
	*task
	row *record.Row
}

// maxKeptBytes limits the rows that a step of a command keeps in memory: it matches no further
// task when it has reached it.
const maxKeptBytes = 1 << 20

// size returns about how many bytes the row takes, 0 without one.
func (f finding) size() int {
	if f.row == nil {
		return 0
	}
	return len(f.row.Payload) + len(f.row.Checkpoint) + len(f.row.Result)
}

// matches reports whether the row of a task matches the fields that only rows have.
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
