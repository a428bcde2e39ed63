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

// cascades cancels the successors of forgotten tasks. If a task is forgotten without
// having succeeded, it cannot be retried, so the tasks that have it in After can never
// start: a cascade cancels them, a cascade of each of these cancels its own successors,
// and so on down the chain. A retry of a cancelled task revives that task alone. The
// caller of each method holds the lock of the machine.
//
// A cascade that takes more than one step has a row. Without the row, a store opened
// after a crash would assume that the forgotten task had succeeded, and start its
// successors.
type cascades struct {
	clock    *clock
	counters *counters
	journal  *journal.Journal
	scans    *scans
	rows     *taskRows

	unrecorded []*waiters              // lists whose cascades this step has begun
	postponed  *[]*waiters             // receives the cascades of the present command; nil outside of one
	found      map[queue.ID][]*waiters // rows that load has read, by cascade.ID; nil after resume
}

// cascade is the reason why the tasks of a list are cancelled. The exported fields are
// stored in its row, as JSON.
type cascade struct {
	ID        queue.ID  `json:"id"`           // of the predecessor
	Seq       uint64    `json:"seq"`          // of the predecessor
	Last      uint64    `json:"last"`         // tasks with a larger Seq have another predecessor of this ID
	Began     time.Time `json:"began"`        // tasks that ended and were retried after Began are spared
	Forgotten bool      `json:"forgotten"`    // false: a cascade cancelled the predecessor
	By        string    `json:"by,omitempty"` // the operator that purged the forgotten task

	recorded bool
}

// key returns the key of the cascade's row.
func (c *cascade) key() string {
	return string(binary.BigEndian.AppendUint64([]byte(rowCascade), c.Last))
}

// why returns the cause for the steps of the cancelled tasks.
func (c *cascade) why() cause {
	text := "task %s, which has to succeed first, was forgotten"
	if !c.Forgotten {
		text = "task %s, which has to succeed first, was cancelled with the task before it"
	}
	return cause{on: queue.OnCancel, by: c.By, detail: fmt.Sprintf(text, c.ID)}
}

// spares reports whether a task with these steps ended and was retried after the cascade
// began: such a task no longer waits for the forgotten one. A retry of a Scheduled task,
// which only makes it due, does not count: the cascade has not visited that task yet.
func (c *cascade) spares(steps []queue.Step) bool {
	for i := 1; i < len(steps); i++ {
		dropped := i == 1 && len(steps) == queue.MaxSteps // the step before it may have been an end
		if s := &steps[i]; s.On == queue.OnRetry && !s.At.Before(c.Began) && (dropped || steps[i-1].To.Finished()) {
			return true
		}
	}
	return false
}

// begin begins a cascade that cancels the tasks of a list, or postpones it until the
// present command has found all its tasks.
func (s *cascades) begin(w *waiters, c cascade) {
	c.Last, c.Began = s.counters.nextSeq(), s.clock.time()
	w.cascade = &c
	s.unrecorded = append(s.unrecorded, w)
	if s.postponed != nil && c.Forgotten {
		*s.postponed = append(*s.postponed, w)
		return
	}
	s.scans.start(w, visitCancel)
}

// start starts the scans of postponed cascades.
func (s *cascades) start(cascades *[]*waiters) {
	for _, w := range *cascades {
		s.scans.start(w, visitCancel)
	}
	*cascades = nil
}

// recordAll writes the rows of the cascades that this step has begun and not completed.
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
		panic(err) // every value of a cascade can be encoded
	}
	s.journal.Set(c.key(), value, false)
	c.recorded = true
}

// setBack corrects Began. Otherwise a later retry of a task that the cascade has
// cancelled would appear to be earlier than the cascade.
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

// load reads the rows of cascades that were not complete.
func (s *cascades) load() error {
	return s.journal.Stored().Scan(rowCascade, func(key string, value []byte) error {
		c := &cascade{recorded: true}
		if err := json.Unmarshal(value, c); err != nil || c.key() != rowCascade+key {
			return fmt.Errorf("%w: row %q of tasks to be cancelled: %w", record.ErrCorrupt, key, err)
		}
		s.counters.reserve(c.Last)
		s.found[c.ID] = append(s.found[c.ID], &waiters{cascade: c})
		return nil
	})
}

// of returns the waiters of the loaded cascade that has to cancel t, because t comes
// after the task with an ID; nil if there is none.
func (s *cascades) of(t *task, id queue.ID) *waiters {
	for _, w := range s.found[id] {
		c, seq := w.cascade, t.entry.Ticket()
		if t.state == queue.Waiting || t.state == queue.Running || seq < c.Seq || seq > c.Last {
			continue
		}
		if row, err := s.rows.row(t); err != nil || !c.spares(row.Steps) {
			return w
		}
	}
	return nil
}

// resume starts the scans of the loaded cascades. Their tasks must be in the lists
// already.
func (s *cascades) resume() {
	for _, of := range s.found {
		for _, w := range of {
			if w.Len() == 0 {
				s.remove(w.cascade)
			}
			s.scans.start(w, visitCancel)
		}
	}
	s.found = nil
}
