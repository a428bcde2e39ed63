package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// commands carries out the commands of operators: it pauses, resumes, cancels, retries,
// edits and forgets the tasks that match a filter. The worker of a running task is given
// an order. A task whose row cannot be read is left unchanged and counted in the error,
// unless the command forgets it. The caller of each method holds the lock of the machine.
type commands struct {
	attempts     *attempts
	clock        *clock
	deps         *dependencies
	finder       *finder
	fingerprints *fingerprints
	holds        *holds
	journal      *journal.Journal
	scans        *scans
	queues       *queueSet
	rows         *taskRows
	states       *stateIndex
	tasks        *tasks
	transitions  *transitions
}

// some carries out a command on the first candidates of a part of a search, at least on
// one, and removes them from the part. It stops when the step has read and written as much
// as it may, or has changed limit tasks. It matches these candidates before it changes the
// first one.
func (d *commands) some(s *search, c queue.Command, limit int, bad *unread) (changed int) {
	begun := d.journal.Mark()
	found, rest := d.match(s, bad)
	for i := range found {
		if changed == limit {
			break
		}
		id := found[i].id
		if i > 0 && found[i].row == nil && d.scans.full() {
			rest = s.ids[slices.Index(s.ids, id):]
			break
		}
		t := d.tasks.get(id)
		if t == nil {
			continue // forgotten since, by a change of another task
		}
		if t.damaged() {
			d.holds.repair(t) // its row may be readable now, with another state than Held
		}
		row, err := d.rows.rowSince(t, found[i].row, begun)
		if err != nil && (c.Do != queue.OrderForget || !t.state.Finished()) {
			bad.add(err)
			continue
		}
		if d.one(t, &row, c) {
			changed++
			d.scans.advance()
		}
	}
	s.ids = rest
	return changed
}

// match returns the first candidates of a part of a search that match, and the candidates
// that are left to match when the rows read are as much as a step keeps in memory.
func (d *commands) match(s *search, bad *unread) (found []finding, rest []queue.ID) {
	found = make([]finding, 0, len(s.ids))
	kept := 0
	for i, id := range s.ids {
		if i > 0 && (kept >= maxKeptBytes || d.scans.full()) {
			return found, s.ids[i:]
		}
		f, err := d.finder.match(s, id)
		switch {
		case err != nil:
			bad.add(err)
		case f.task != nil:
			found = append(found, f)
			kept += f.size()
		}
	}
	return found, nil
}

// one carries out a command on one task, and reports whether anything has changed.
func (d *commands) one(t *task, row *record.Row, c queue.Command) (changed bool) {
	w := cause{on: c.Do.Trigger(), by: c.By, detail: c.Reason}
	switch {
	case t.state.Finished():
		return d.finished(t, row, w)
	case t.state == queue.Running:
		return d.attempts.order(t, &c)
	case c.Do == queue.OrderPause && t.state != queue.Paused:
		d.transitions.change(t, row, queue.Paused, w)
	case c.Do == queue.OrderCancel:
		d.transitions.change(t, row, queue.Cancelled, w)
	case c.Do == queue.OrderResume && t.state == queue.Paused:
		d.transitions.change(t, row, d.transitions.pending(t, unix(row.RunAt)), w)
	case c.Do == queue.OrderRetry && t.state == queue.Scheduled:
		row.RunAt = d.clock.time()
		d.transitions.change(t, row, d.transitions.pending(t, 0), w)
	case c.Do == queue.OrderEdit:
		return d.edit(t, row, c.Edit, w)
	default:
		return false
	}
	return true
}

// finished is one for a finished task.
func (d *commands) finished(t *task, row *record.Row, w cause) (changed bool) {
	switch {
	case w.on == queue.OnForget:
		d.transitions.forget(t, row, w)
	case w.on == queue.OnRetry && t.state != queue.Succeeded:
		d.retry(t, row, w)
	default:
		return false
	}
	return true
}

// retry makes a finished task pending again. The task keeps its age and its steps.
func (d *commands) retry(t *task, row *record.Row, w cause) {
	d.states.leave(t)
	row.Failures, row.Crashes, row.RunAt = 0, 0, d.clock.time()
	if !row.Deadline.After(d.clock.time()) {
		row.Deadline = time.Time{}
	}
	row.Progress = queue.Progress{} // the token stays: it voids entries of earlier leases in the lease log
	d.fingerprints.remove(t)
	d.holds.join(t, row)
	d.deps.retried(t)
	d.transitions.put(t, row, d.transitions.pending(t, 0), w)
}

// edit applies e to an unfinished task that is not running, and moves the task in the
// index of states accordingly. If the task would become invalid, edit leaves it unchanged
// and returns false.
func (d *commands) edit(t *task, row *record.Row, e *queue.Edit, w cause) (changed bool) {
	s := row.Spec
	if e.Tier != nil {
		s.Tier = *e.Tier
	}
	if e.Key != nil {
		s.Key = *e.Key
	}
	if e.RunAt != nil {
		s.RunAt = *e.RunAt
	}
	if e.Deadline != nil {
		s.Deadline = *e.Deadline
	}
	if len(e.Labels) > 0 {
		s.Labels = maps.Clone(s.Labels) // other rows may share the map
		if s.Labels == nil {
			s.Labels = make(map[string]string, len(e.Labels))
		}
		maps.Copy(s.Labels, e.Labels)
	}
	late := !s.Deadline.IsZero() && !s.RunAt.IsZero() && !s.Deadline.After(s.RunAt)
	if late && (e.Deadline != nil || e.RunAt != nil) || len(s.Labels) > queue.MaxLabels {
		return false
	}
	row.Spec = s
	if e.RunAt != nil {
		row.RunAtEdited = d.clock.time()
	}
	if e.Deadline != nil {
		row.DeadlineEdited = d.clock.time()
	}
	to := queue.Paused
	if t.state != queue.Paused {
		to = d.transitions.pending(t, unix(row.RunAt))
	}
	d.transitions.step(d.queues.of(t), row, to, w)
	d.states.leave(t)
	t.tier = uint8(row.Tier - stint.Lowest)
	if t.optional != nil {
		d.states.deadlines.remove(t)
	}
	d.states.arm(t, row)
	d.states.enter(t, row, to)
	d.rows.write(t.id, row)
	return true
}

// unread counts the tasks whose rows a command could not read.
type unread struct {
	n     int
	first error
}

func (u *unread) add(err error) {
	if u.n++; u.first == nil {
		u.first = err
	}
}

// err returns the error of a command that left tasks unchanged, or nil.
func (u *unread) err() error {
	if u.n == 0 {
		return nil
	}
	return fmt.Errorf("%d tasks could not be read and stay as they are; the first error: %w", u.n, u.first)
}
