package machine

import (
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// corrector moves the clock, and corrects times that an earlier process wrote while its
// clock was ahead. Rows may then hold times later than the first call; waiting for
// those times would stop all delays, leases and rates. So the first call moves them
// back by the distance from the latest of them to itself, as if no time had passed
// between the two. It corrects the rows too, before it returns: no time of the other
// clock remains, and no row is corrected twice. Within one opening the clock of the
// calls must not jump. The caller of each method holds the lock of the machine.
type corrector struct {
	cascades    *cascades
	cfg         *Config
	clock       *clock
	deps        *dependencies
	journal     *journal.Journal
	rows        *taskRows
	savedRates  *savedRates
	states      *stateIndex
	tasks       *tasks
	uniqueNames *uniqueNames

	opening *opening // nil from the first call on
}

// opening is the work that Open leaves to the first call, because it needs the time.
type opening struct {
	resumed []*task // their leases outlived the previous process, and are extended
	lost    []*task // their leases were lost with the previous process
}

// span is the interval (from, to], in nanoseconds since 1970.
type span struct{ from, to int64 }

// correction moves times later than from back by back.
type correction struct {
	from time.Time
	back time.Duration
}

// setBack is the progress of the correction of all rows, which is made in parts.
type setBack struct {
	correction
	next   uint32 // the number of the next task to correct
	opened *opening
}

// minSetBackReported is the smallest correction that is reported to Config.SetBack.
const minSetBackReported = time.Second

// tick moves the clock to the time of a call. A call with a zero time does not move it.
// The first call begins the correction: tick returns the part that is left to do, or nil.
func (c *corrector) tick(now time.Time) (rest *setBack) {
	o := c.opening
	if o == nil || now.IsZero() {
		c.clock.now = max(c.clock.now, now.UnixNano())
		return nil
	}
	latest := c.clock.now // in the rows
	c.opening, c.clock.begun, c.clock.now = nil, true, now.UnixNano()
	c.savedRates.opened()
	if c.clock.now < latest {
		return c.setBack(o, time.Duration(latest-c.clock.now))
	}
	c.clock.away = span{latest, c.clock.now}
	c.endOpening(o)
	return nil
}

// endOpening resumes or dates the leases of the previous process, when no time in the
// rows is later than the first call.
func (c *corrector) endOpening(o *opening) {
	c.resume(o.resumed)
	c.dateLosses(o.lost)
}

// setBack corrects the first part of the tasks whose rows have times after now, and
// returns the correction of the others, or nil if there are none.
func (c *corrector) setBack(o *opening, back time.Duration) *setBack {
	if c.cfg.SetBack != nil && back >= minSetBackReported {
		c.cfg.SetBack(back)
	}
	s := &setBack{correction{c.clock.time(), back}, 1, o}
	if c.setBackPart(s) {
		return nil
	}
	return s
}

// setBackPart corrects tasks until it has read and written bytesPerStep. It reports whether
// the correction is complete, or the journal has failed.
func (c *corrector) setBackPart(s *setBack) (complete bool) {
	for begun := c.rows.bytes; s.next <= c.tasks.used && c.journal.Failed() == nil; s.next++ {
		if c.rows.bytes-begun >= bytesPerStep {
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
			c.states.due.set(t, c.clock.after(rereadInterval))
		case t.at > c.clock.now: // otherwise no time of the row is after now
			c.correct(t, s.correction)
		}
	}
	c.uniqueNames.setBack(s.back)
	c.states.sortLists()
	c.endOpening(s.opened)
	return true
}

// correct corrects the times of a task.
func (c *corrector) correct(t *task, by correction) {
	row, err := c.rows.row(t)
	if err != nil {
		if !t.state.Finished() {
			c.states.quarantine(t, err)
		}
		return
	}
	if !row.Changed.After(by.from) {
		return
	}
	by.apply(&row, c.submittedBefore(t, &row, by))
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
	c.rows.write(t.id, &row)
}

// submittedBefore returns when the last of the predecessors of a task was submitted whose time is
// right, zero if there is none: the task was submitted after that, whatever the clock showed.
// [queue.Queue.Predecessors] would take a predecessor for a later task with its ID otherwise.
func (c *corrector) submittedBefore(t *task, row *record.Row, by correction) (last time.Time) {
	for _, id := range slices.Concat(row.After, row.AfterAny) {
		before := c.deps.earlier(t, id)
		if before == nil {
			continue
		}
		if of, err := c.rows.row(before); err == nil && !of.Submitted.After(by.from) {
			last = later(last, of.Submitted)
		}
	}
	return last
}

// apply corrects a row, of a task that was submitted at earliest or later. RunAt is moved if
// the step or edit that set it was later than from, and Deadline if the submission or edit
// was. Steps stay in ascending order.
func (c correction) apply(row *record.Row, earliest time.Time) {
	if !row.RunAt.IsZero() && scheduled(row).After(c.from) {
		row.RunAt = row.RunAt.Add(-c.back)
	}
	if !row.Deadline.IsZero() && later(row.Submitted, row.DeadlineEdited).After(c.from) {
		row.Deadline = row.Deadline.Add(-c.back)
	}
	row.RunAtEdited, row.DeadlineEdited = c.time(row.RunAtEdited), c.time(row.DeadlineEdited)
	row.Submitted = later(c.time(row.Submitted), earliest)
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
		row.RunAt = row.Changed // a task that was due stays due
	}
}

func (c correction) time(t time.Time) time.Time {
	if t.After(c.from) {
		return t.Add(-c.back)
	}
	return t
}

// scheduled returns the time of the last step or edit that set RunAt.
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

// dateLosses sets the times at which leases were lost with the previous process to the
// time of the first call: the process ended before then, and no row says when.
func (c *corrector) dateLosses(lost []*task) {
	for _, t := range lost {
		row, err := c.rows.row(t)
		if err != nil {
			continue // the loss keeps the time of the latest change in the rows
		}
		for i := len(row.Steps) - 1; i > 0 && row.Steps[i].On != queue.OnClaim; i-- {
			row.Steps[i].At = c.clock.time()
		}
		row.Changed, t.at = c.clock.time(), c.clock.now
		c.rows.write(t.id, &row)
	}
	if len(lost) > 0 {
		c.states.sortLists() // a loss is now later than changes that it caused
	}
}

// resume extends the leases that outlived a restart, counted from the first call.
func (c *corrector) resume(leased []*task) {
	for _, t := range leased {
		t.at = c.clock.now
		c.states.extend(t, t.lease.row.Remote)
	}
}
