package machine

import (
	"container/list"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// A task that is forgotten without having succeeded takes those along that come
// after it: they are cancelled, because nobody can retry it any more. So are those
// that come after these, and so on down the chain: none of them could start before
// somebody retries the one before it. A retry of such a task revives that task alone.
//
// A cascade that takes more than one step has a row. Without it, an opened store would
// take the forgotten task for one that had succeeded, and start what comes after it.

// cascade is why the tasks of a list are cancelled. Its exported fields are its row.
type cascade struct {
	ID        queue.ID  `json:"id"`           // of the task that they come after
	Seq       uint64    `json:"seq"`          // and its age
	Last      uint64    `json:"last"`         // tasks with a larger Seq came later, and come after another one
	Began     time.Time `json:"began"`        // tasks that have ended and were retried since then are spared
	Forgotten bool      `json:"forgotten"`    // false: the task was cancelled by a cascade itself
	By        string    `json:"by,omitempty"` // the operator who purged the forgotten task

	recorded bool
}

func (c *cascade) key() string {
	return string(binary.BigEndian.AppendUint64([]byte(rowCascade), c.Last))
}

// why is what the steps of the cancelled tasks say.
func (c *cascade) why() why {
	text := "task %s, which has to succeed first, was forgotten"
	if !c.Forgotten {
		text = "task %s, which has to succeed first, was cancelled with the task before it"
	}
	return why{on: queue.OnCancel, by: c.By, detail: fmt.Sprintf(text, c.ID)}
}

// orphan cancels the tasks that wait for the success of a task.
func (m *Machine) orphan(id queue.ID, seq uint64, forgotten bool, by string) {
	p := m.predecessors[id]
	if p == nil || p.success.Len() == 0 {
		return
	}
	w := p.success
	p.success = new(waiters) // of tasks that come to wait for it later
	w.cascade = &cascade{ID: id, Seq: seq, Last: m.counters.nextSeq(), Began: m.clock.time(), Forgotten: forgotten, By: by}
	m.unrecorded = append(m.unrecorded, w)
	if m.postponed != nil && forgotten {
		*m.postponed = append(*m.postponed, w)
		return
	}
	m.startPass(w, visitCancel)
}

// startCascades begins to cancel the tasks of cascades that were postponed.
func (m *Machine) startCascades(cascades *[]*waiters) {
	for _, w := range *cascades {
		m.startPass(w, visitCancel)
	}
	*cascades = nil
}

// visitCancel cancels a task. One whose row cannot be read stays in the list until it
// can be.
func visitCancel(m *Machine, w *waiters, e *list.Element) {
	t := e.Value.(*task)
	row, err := m.rows.row(t)
	if err != nil {
		m.spoil(t, err)
		return
	}
	m.cancelOrphan(t, &row, w.cascade)
}

// cancelOrphan cancels a task for a cascade, and those that come after it in turn.
func (m *Machine) cancelOrphan(t *task, row *record.Row, c *cascade) {
	id, seq := t.id, t.place.Ticket()
	m.change(t, row, queue.Cancelled, c.why())
	m.orphan(id, seq, false, c.By)
}

// recordCascades writes the rows of cascades that have begun in this step and are not
// complete.
func (m *Machine) recordCascades() {
	for _, w := range m.unrecorded {
		c := w.cascade
		if w.Len() == 0 || c.recorded {
			continue
		}
		m.record(c)
	}
	m.unrecorded = nil
}

// record writes the row of a cascade.
func (m *Machine) record(c *cascade) {
	value, err := json.Marshal(c)
	if err != nil {
		panic(err) // there is no value that could not be written
	}
	m.journal.set(c.key(), value, false)
	c.recorded = true
}

// setBackCascade corrects when a cascade began, as setBack does: a later retry of a
// task that it has cancelled would else seem to be before it.
func (m *Machine) setBackCascade(c *cascade, by correction) {
	if c.Began.After(by.from) {
		c.Began = by.time(c.Began)
		m.record(c)
	}
}

// unrecord removes the row of a cascade that is complete.
func (m *Machine) unrecord(c *cascade) {
	if c.recorded {
		m.journal.set(c.key(), nil, false)
		c.recorded = false
	}
}

// loadCascades reads the cascades that were not complete.
func (m *Machine) loadCascades() error {
	return m.journal.scan(rowCascade, func(key string, value []byte) error {
		c := &cascade{recorded: true}
		if err := json.Unmarshal(value, c); err != nil || c.key() != rowCascade+key {
			return fmt.Errorf("%w: row %q of tasks to be cancelled: %w", record.ErrCorrupt, key, err)
		}
		m.counters.reserve(c.Last)
		m.cascades[c.ID] = append(m.cascades[c.ID], &waiters{cascade: c})
		return nil
	})
}

// orphanedBy returns the waiters of a cascade that was to cancel a task because of one
// that it comes after; nil if there is none.
func (m *Machine) orphanedBy(t *task, id queue.ID) *waiters {
	for _, w := range m.cascades[id] {
		c, seq := w.cascade, t.place.Ticket()
		if t.state == queue.Waiting || t.state == queue.Running || seq < c.Seq || seq > c.Last {
			continue
		}
		if row, err := m.rows.row(t); err != nil || !c.spares(row.Steps) {
			return w
		}
	}
	return nil
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

// resumeCascades goes on with the cascades that were loaded, when the tasks wait in
// their lists.
func (m *Machine) resumeCascades() {
	for _, of := range m.cascades {
		for _, w := range of {
			if w.Len() == 0 {
				m.unrecord(w.cascade)
			}
			m.startPass(w, visitCancel)
		}
	}
	m.cascades = nil
}
