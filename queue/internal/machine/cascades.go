package machine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// cascades cancels tasks that come after a forgotten task. A task that is forgotten
// without having succeeded takes those along that come after it: they are cancelled,
// because it cannot be retried any more. So are those that come after these, and so on
// down the chain: none of them could start before the one before it is retried. A retry
// of such a task revives that task alone. The caller of each method holds the lock of the
// machine.
//
// A cascade that takes more than one step has a row. Without it, an opened store would
// take the forgotten task for one that had succeeded, and start what comes after it.
type cascades struct {
	clock    *clock
	counters *counters
	journal  *journal.Journal
	passes   *passes
	rows     *taskRows

	unrecorded []*waiters              // lists whose cascades this step has begun
	postponed  *[]*waiters             // takes the cascades that the present command begins; nil outside of one
	found      map[queue.ID][]*waiters // that Open has found
}

// cascade is the reason why the tasks of a list are cancelled. Its exported fields are
// its row.
type cascade struct {
	ID        queue.ID  `json:"id"`           // of the task that they come after
	Seq       uint64    `json:"seq"`          // and its age
	Last      uint64    `json:"last"`         // tasks with a larger Seq came later, and come after another one
	Began     time.Time `json:"began"`        // tasks that have ended and were retried since then are spared
	Forgotten bool      `json:"forgotten"`    // false: the task was cancelled by a cascade itself
	By        string    `json:"by,omitempty"` // the operator that purged the forgotten task

	recorded bool
}

func (c *cascade) key() string {
	return string(binary.BigEndian.AppendUint64([]byte(rowCascade), c.Last))
}

// why returns the cause that the steps of the cancelled tasks name.
func (c *cascade) why() cause {
	text := "task %s, which has to succeed first, was forgotten"
	if !c.Forgotten {
		text = "task %s, which has to succeed first, was cancelled with the task before it"
	}
	return cause{on: queue.OnCancel, by: c.By, detail: fmt.Sprintf(text, c.ID)}
}

// spares reports whether a task has been retried since the cascade began, after it had
// ended: it waits for nothing that was forgotten before. A retry of a task that was only
// delayed does not count, because the cascade has not come to that task yet.
func (c *cascade) spares(steps []queue.Step) bool {
	for i := 1; i < len(steps); i++ {
		dropped := i == 1 && len(steps) == queue.MaxSteps // the step before it, as it may be
		if s := &steps[i]; s.On == queue.OnRetry && !s.At.Before(c.Began) && (dropped || steps[i-1].To.Finished()) {
			return true
		}
	}
	return false
}

// begin begins to cancel the tasks of a list, or leaves it to the present command to
// begin it.
func (s *cascades) begin(w *waiters, c cascade) {
	c.Last, c.Began = s.counters.nextSeq(), s.clock.time()
	w.cascade = &c
	s.unrecorded = append(s.unrecorded, w)
	if s.postponed != nil && c.Forgotten {
		*s.postponed = append(*s.postponed, w)
		return
	}
	s.passes.start(w, visitCancel)
}

// start begins to cancel the tasks of cascades that were postponed.
func (s *cascades) start(cascades *[]*waiters) {
	for _, w := range *cascades {
		s.passes.start(w, visitCancel)
	}
	*cascades = nil
}

// recordAll writes the rows of cascades that have begun in this step and are not
// complete.
func (s *cascades) recordAll() {
	for _, w := range s.unrecorded {
		c := w.cascade
		if w.Len() == 0 || c.recorded {
			continue
		}
		s.record(c)
	}
	s.unrecorded = nil
}

// record writes the row of a cascade.
func (s *cascades) record(c *cascade) {
	value, err := json.Marshal(c)
	if err != nil {
		panic(err) // there is no value that could not be written
	}
	s.journal.Set(c.key(), value, false)
	c.recorded = true
}

// setBack corrects the time when a cascade began. Otherwise a later retry of a task that
// it has cancelled would seem to be before it.
func (s *cascades) setBack(c *cascade, by correction) {
	if c.Began.After(by.from) {
		c.Began = by.time(c.Began)
		s.record(c)
	}
}

// remove removes the row of a cascade that is complete.
func (s *cascades) remove(c *cascade) {
	if c.recorded {
		s.journal.Set(c.key(), nil, false)
		c.recorded = false
	}
}

// load reads the cascades that were not complete.
func (s *cascades) load() error {
	return s.journal.Scan(rowCascade, func(key string, value []byte) error {
		c := &cascade{recorded: true}
		if err := json.Unmarshal(value, c); err != nil || c.key() != rowCascade+key {
			return fmt.Errorf("%w: row %q of tasks to be cancelled: %w", record.ErrCorrupt, key, err)
		}
		s.counters.reserve(c.Last)
		s.found[c.ID] = append(s.found[c.ID], &waiters{cascade: c})
		return nil
	})
}

// of returns the waiters of a cascade that was to cancel t because t comes after the task
// of an ID; nil if there is none.
func (s *cascades) of(t *task, id queue.ID) *waiters {
	for _, w := range s.found[id] {
		c, seq := w.cascade, t.place.Ticket()
		if t.state == queue.Waiting || t.state == queue.Running || seq < c.Seq || seq > c.Last {
			continue
		}
		if row, err := s.rows.row(t); err != nil || !c.spares(row.Steps) {
			return w
		}
	}
	return nil
}

// resume continues the cascades that were loaded, when the tasks wait in their lists.
func (s *cascades) resume() {
	for _, of := range s.found {
		for _, w := range of {
			if w.Len() == 0 {
				s.remove(w.cascade)
			}
			s.passes.start(w, visitCancel)
		}
	}
	s.found = nil
}
