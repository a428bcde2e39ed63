package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// corrector takes the time of the first call, and corrects the times of an earlier
// process whose clock was ahead. The calls of one opening have clocks that do not jump.
// Rows may hold times that are later than the first call; waiting for such a time would
// stop all delays, leases and rates until then. So the first call moves those times back
// by the distance from the latest of them to itself, as if no time had passed between the
// two. It corrects the rows as well, before it is answered: nothing is left of the other
// clock, and no row is ever corrected twice. The caller of each method holds the lock of
// the machine.
type corrector struct {
	cascades    *cascades
	cfg         *Config
	clock       *clock
	journal     *journal.Journal
	rows        *taskRows
	states      *stateIndex
	tasks       *tasks
	uniqueNames *uniqueNames

	opening *opening // nil from the first call on
}

// opening is what Open leaves to the first call, which brings the time.
type opening struct {
	resumed []*task // their leases outlived the process before, and begin anew
	lost    []*task // their leases were lost with it
}

// span is a time from after from to to.
type span struct{ from, to int64 }

// correction moves times that are later than from back.
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
	// setBackLeast is the least distance of a clock behind the rows that is reported.
	setBackLeast = time.Second
	// setBackMost is the number of bytes of corrected rows that are written at once.
	setBackMost = 4 << 20
)

// tick takes the time of a call; a call without a time leaves it as it is. tick returns
// the correction that it has begun, nil if there is nothing left to correct.
func (c *corrector) tick(now time.Time) (rest *setBack) {
	o := c.opening
	if o == nil || now.IsZero() {
		c.clock.now = max(c.clock.now, now.UnixNano())
		return nil
	}
	latest := c.clock.now // in the rows
	c.opening, c.clock.begun, c.clock.now = nil, true, now.UnixNano()
	if c.clock.now < latest {
		return c.setBack(o, time.Duration(latest-c.clock.now))
	}
	c.clock.away = span{latest, c.clock.now}
	c.goOn(o)
	return nil
}

// goOn decides about the leases that there were, when no time in the rows is later than
// the first call.
func (c *corrector) goOn(o *opening) {
	c.resume(o.resumed)
	c.dateLosses(o.lost)
}

// setBack corrects a part of the tasks whose rows have times after now, and returns the
// correction of the others, nil if there are none.
func (c *corrector) setBack(o *opening, back time.Duration) *setBack {
	if c.cfg.SetBack != nil && back >= setBackLeast {
		c.cfg.SetBack(back)
	}
	s := &setBack{correction{c.clock.time(), back}, 1, o}
	if c.setBackPart(s) {
		return nil
	}
	return s
}

// setBackPart corrects tasks until their rows have the size of a part. It reports whether
// that was the last part, or nothing more can be written.
func (c *corrector) setBackPart(s *setBack) (complete bool) {
	for size := 0; s.next <= c.tasks.used && c.journal.Failed() == nil; s.next++ {
		if size >= setBackMost {
			return false
		}
		t := c.tasks.at(s.next)
		for _, w := range t.waiting() {
			if w.in != nil && w.in.cascade != nil {
				c.cascades.setBack(w.in.cascade, s.correction)
			}
		}
		switch {
		case t.state == 0:
		case t.damaged():
			c.states.due.set(t, c.clock.after(tryAgain))
		case t.at > c.clock.now: // else its row has not changed since, and RunAt and the lease are over
			size += c.correct(t, s.correction)
		}
	}
	c.uniqueNames.setBack(s.back)
	c.states.sortLists()
	c.goOn(s.opened)
	return true
}

// correct corrects the times of a task, and returns how many bytes it has written.
func (c *corrector) correct(t *task, by correction) (size int) {
	row, err := c.rows.row(t)
	if err != nil {
		if !t.state.Finished() {
			c.states.quarantine(t, err)
		}
		return 0
	}
	if !row.Changed.After(by.from) {
		return 0
	}
	by.apply(&row)
	switch t.state {
	case queue.Running:
		t.lease.row = row
	case queue.Scheduled:
		t.at = unix(row.RunAt)
		c.states.due.set(t, t.at)
	default:
		t.at = unix(row.Changed)
	}
	if t.optional != nil && t.expiry > 0 {
		c.states.arm(t, &row)
	}
	return c.rows.write(t.id, &row)
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

// dateLosses dates the ends of leases that were lost with an earlier process. When that
// process ended is unknown; it was not later than the first call.
func (c *corrector) dateLosses(lost []*task) {
	for _, t := range lost {
		row, err := c.rows.row(t)
		if err != nil {
			continue // the loss keeps the time of the last change that is known
		}
		for i := len(row.Steps) - 1; i > 0 && row.Steps[i].On != queue.OnClaim; i-- {
			row.Steps[i].At = c.clock.time()
		}
		row.Changed, t.at = c.clock.time(), c.clock.now
		c.rows.write(t.id, &row)
	}
	if len(lost) > 0 {
		c.states.sortLists() // tasks that went on because of a loss may stand behind it
	}
}

// resume begins anew the leases that outlived a restart, at the first call.
func (c *corrector) resume(leased []*task) {
	for _, t := range leased {
		t.at = c.clock.now
		c.states.extend(t, t.lease.row.Remote)
	}
}
