package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// A machine reads no clock: each call brings the time. The calls of one opening have
// clocks that do not jump, and may pass one another on their way, so the machine takes
// the latest time that a call has brought. Rows may hold times that are later than the
// first call, because an earlier process had a clock that was ahead. Waiting for such a
// time would stop all delays, leases and rates until then. So the first call moves those
// times back by the distance from the latest of them to itself, as if no time had
// passed between the two. It corrects the rows as well, before it is answered: nothing
// is left of the other clock, and no row is ever corrected twice.

// opening is what Open leaves to the first call, which brings the time.
type opening struct {
	resumed []*task // their leases outlived the process before, and begin anew
	lost    []*task // their leases were lost with it
}

// span is a time from after from to to.
type span struct{ from, to int64 }

// correction moves the times after from back.
type correction struct {
	from time.Time
	back time.Duration
}

// setBack is the correction of all rows, in parts.
type setBack struct {
	correction
	next   uint32 // the number of the task that is next
	opened *opening
}

const (
	// setBackLeast is by how much a clock must be behind the rows to be reported.
	setBackLeast = time.Second
	// setBackMost is how many bytes of corrected rows are written at once.
	setBackMost = 4 << 20
)

// tick takes the time of a call. A call without a time says nothing about it.
func (m *Machine) tick(now time.Time) {
	o := m.opening
	if o == nil || now.IsZero() {
		m.clock.now = max(m.clock.now, now.UnixNano())
		return
	}
	latest := m.clock.now // in the rows
	m.opening, m.clock.begun, m.clock.now = nil, true, now.UnixNano()
	if m.clock.now < latest {
		m.setBack(o, time.Duration(latest-m.clock.now))
		return
	}
	m.clock.away = span{latest, m.clock.now}
	m.goOn(o)
}

// goOn decides about the leases that there were when the times in the rows are those of
// the first call, or earlier.
func (m *Machine) goOn(o *opening) {
	m.resume(o.resumed)
	m.dateLosses(o.lost)
}

// setBack corrects all tasks whose rows have times after now. If they are more than a
// part, a goroutine corrects the others: it gives up the lock while a part is written, as
// a full disk may keep it for long. Steps wait until it has corrected all, because they
// would meet times of two clocks; reads do not.
func (m *Machine) setBack(o *opening, back time.Duration) {
	if m.cfg.SetBack != nil && back >= setBackLeast {
		m.cfg.SetBack(back)
	}
	s := &setBack{correction{m.clock.time(), back}, 1, o}
	if m.setBackPart(s) {
		return
	}
	m.correcting = make(chan struct{})
	m.reading.Add(1)
	go m.setBackRest(s, m.journal.seal())
}

// setBackRest makes the parts of a correction behind the first one, which is durable
// from a mark on.
func (m *Machine) setBackRest(s *setBack, mark uint64) {
	defer m.reading.Done()
	for complete := false; !complete; {
		_ = m.journal.sync(mark, nil, nil) // failed tells of an error
		m.mu.Lock()
		if complete = m.setBackPart(s); complete {
			close(m.correcting)
			m.correcting = nil
		}
		mark = m.journal.seal()
		m.mu.Unlock()
	}
}

// setBackPart corrects tasks until their rows have the size of a part, and reports
// whether that was the last part, or nothing more can be written.
func (m *Machine) setBackPart(s *setBack) (complete bool) {
	for size := 0; s.next <= m.tasks.used && m.journal.failed() == nil; s.next++ {
		if size >= setBackMost {
			return false
		}
		t := m.tasks.at(s.next)
		for _, w := range t.waiting() {
			if w.in != nil && w.in.cascade != nil {
				m.cascades.setBack(w.in.cascade, s.correction)
			}
		}
		switch {
		case t.state == 0:
		case t.damaged():
			m.states.due.set(t, m.clock.after(tryAgain))
		case t.at > m.clock.now: // else its row has not changed since, and RunAt and the lease are over
			size += m.correct(t, s.correction)
		}
	}
	m.uniqueNames.setBack(s.back)
	m.states.sortLists()
	m.goOn(s.opened)
	return true
}

// correct corrects the times of a task, and returns how many bytes it has written.
func (m *Machine) correct(t *task, c correction) (size int) {
	row, err := m.rows.row(t)
	if err != nil {
		if !t.state.Finished() {
			m.states.quarantine(t, err)
		}
		return 0
	}
	if !row.Changed.After(c.from) {
		return 0
	}
	c.apply(&row)
	switch t.state {
	case queue.Running:
		t.lease.row = row
	case queue.Scheduled:
		t.at = unix(row.RunAt)
		m.states.due.set(t, t.at)
	default:
		t.at = unix(row.Changed)
	}
	if t.rare != nil && t.expiry > 0 {
		m.states.arm(t, &row)
	}
	return m.rows.write(t.id, &row)
}

// apply corrects a row. RunAt goes by the clock of the step or edit that set it, and
// Deadline by that of the submission or edit. No step is before the one before it.
func (c correction) apply(row *record.Row) {
	if !row.RunAt.IsZero() && scheduled(row).After(c.from) {
		row.RunAt = row.RunAt.Add(-c.back)
	}
	if !row.Deadline.IsZero() && later(row.Submitted, row.DeadlineEdited).After(c.from) {
		row.Deadline = row.Deadline.Add(-c.back)
	}
	row.RunAtEdited, row.DeadlineEdited = c.time(row.RunAtEdited), c.time(row.DeadlineEdited)
	row.Submitted = c.time(row.Submitted)
	before := row.Submitted
	for i := range row.Steps {
		at := c.time(row.Steps[i].At)
		if at.Before(before) {
			at = before
		}
		row.Steps[i].At, before = at, at
	}
	row.Changed = before
	if due := row.State != queue.Scheduled && row.State != queue.Paused; due && row.RunAt.After(row.Changed) {
		row.RunAt = row.Changed // a task that was due by the other clock stays so
	}
}

func (c correction) time(t time.Time) time.Time {
	if t.After(c.from) {
		return t.Add(-c.back)
	}
	return t
}

// scheduled is the time of the last step or edit that set RunAt.
func scheduled(row *record.Row) time.Time {
	for i := len(row.Steps) - 1; i > 0; i-- {
		switch row.Steps[i].On {
		case queue.OnFailure, queue.OnSnooze, queue.OnRetry:
			return later(row.Steps[i].At, row.RunAtEdited)
		default:
		}
	}
	return later(row.Steps[0].At, row.RunAtEdited)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dateLosses dates the ends of leases that were lost with an earlier process. When
// that ended is unknown; it was not later than the first call.
func (m *Machine) dateLosses(lost []*task) {
	for _, t := range lost {
		row, err := m.rows.row(t)
		if err != nil {
			continue // the loss keeps the time of the last change that is known
		}
		for i := len(row.Steps) - 1; i > 0 && row.Steps[i].On != queue.OnClaim; i-- {
			row.Steps[i].At = m.clock.time()
		}
		row.Changed, t.at = m.clock.time(), m.clock.now
		m.rows.write(t.id, &row)
	}
	if len(lost) > 0 {
		m.states.sortLists() // tasks that went on because of a loss may stand behind it
	}
}
