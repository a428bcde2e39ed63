package machine

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// search goes through the tasks that a filter may find, in the order of their
// IDs, in parts. The lock is held for one part at a time, and not while rows are
// read to see whether they might be found at all.
type search struct {
	filter queue.Filter
	do     queue.Trigger // only what this command concerns, if it is one
	ending ending        // of the filter
	named  []queue.ID    // what is left of the filter's IDs, if it has any
	after  queue.ID      // how far it has come
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
	if len(f.IDs) == 0 {
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

// part finds the next part of a search. lock takes the machine's lock.
func (m *Machine) part(s *search, lock func() error) error {
	if len(s.filter.IDs) > 0 {
		n := min(s.most, len(s.named))
		s.ids, s.named = s.named[:n:n], s.named[n:]
		s.done = len(s.named) == 0
		return nil
	}
	if err := lock(); err != nil {
		return err
	}
	m.finder.look(s)
	m.steps.reading.Add(1) // the rows stay open
	m.steps.mu.Unlock()
	defer m.steps.reading.Done()
	m.finder.sift(s)
	return nil
}

// asksRows reports whether the rows of tasks have to be read to tell whether they are
// searched for. That of a task with a worker is in memory.
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

// mostKept is how many bytes of rows are kept of those that a part has found, until
// something is done with them.
const mostKept = 1 << 20

// within is the finding without its row, if there is no room for that.
func (f finding) within(room *int) finding {
	if f.row == nil {
		return f
	}
	if *room -= len(f.row.Payload) + len(f.row.Checkpoint) + len(f.row.Result); *room < 0 {
		f.row = nil
	}
	return f
}

// matches reports whether a filter may find a task by what its row tells.
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
