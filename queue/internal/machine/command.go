package machine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Command is as [queue.Store] says.
func (m *Machine) Command(ctx context.Context, now time.Time, c queue.Command) (changed int, err error) {
	switch c.Do {
	case queue.OnPause, queue.OnResume, queue.OnCancel, queue.OnRetry, queue.OnForget, queue.OnEdit:
	default:
		return 0, fmt.Errorf("%w: a command cannot %s tasks", queue.ErrInvalid, c.Do)
	}
	if err := cmp.Or(c.Validate(), validateEdit(&c)); err != nil {
		return 0, err
	}
	if c.Limit < 0 {
		return 0, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, c.Limit)
	}
	s := newSearch(c.Filter, queue.ID{}, false)
	s.do, s.most = c.Do, partCommand
	limit := cmp.Or(c.Limit, math.MaxInt)
	var (
		bad      unread
		cascades []*waiters // begin when the command has found all its tasks: it must not find those that they cancel
	)
	for err == nil && !s.done && changed < limit {
		if err = m.part(s, func() error { return m.beginChange(ctx, now) }); err != nil {
			break
		}
		if err = m.beginChange(ctx, now); err == nil {
			m.cascades.postponed = &cascades
			changed += m.commandAll(s, c, limit-changed, &bad)
			m.cascades.postponed = nil
			if s.done || changed >= limit {
				m.cascades.start(&cascades)
			}
			err = m.end(ctx)
		}
	}
	if len(cascades) > 0 { // the command ended early
		m.beginCascades(&cascades)
	}
	return changed, cmp.Or(err, bad.err())
}

// beginCascades begins the cascades of a command that ended early. If the machine has
// been closed, the next one begins them: its rows must not be read any more.
func (m *Machine) beginCascades(cascades *[]*waiters) {
	m.lockCorrected()
	defer m.mu.Unlock()
	if !m.closed {
		m.cascades.start(cascades)
		m.seal()
	}
}

// commandAll does something to what a part of a search has found, which is all
// looked up before anything changes, and to at most so many tasks.
func (m *Machine) commandAll(s *search, c queue.Command, limit int, bad *unread) (changed int) {
	begun, room := m.journal.mark(), mostKept
	found := make([]finding, 0, len(s.ids))
	for _, id := range s.ids {
		f, err := m.match(s, id)
		switch {
		case err != nil:
			bad.add(err)
		case f.task != nil:
			found = append(found, f.within(&room))
		}
	}
	for i := range found {
		if changed == limit {
			break
		}
		id := found[i].id
		t := m.tasks.get(id)
		if t == nil {
			continue // it has been forgotten with another
		}
		if t.damaged() {
			m.holds.repair(t) // it may be readable by now, and is another then than it was set aside as
		}
		row, err := m.rows.rowSince(t, found[i].row, begun)
		if err != nil && (c.Do != queue.OnForget || !t.state.Finished()) {
			bad.add(err)
			continue
		}
		if m.command(t, &row, c) {
			changed++
			m.passes.advance()
		}
	}
	return changed
}

// concerns reports whether a command, or 0 for a question, may be about a task. Only those are forgotten
// that were finished before: not those, too, that are cancelled because another one
// is forgotten.
func concerns(do queue.Trigger, t *task) bool {
	switch do {
	case queue.OnForget:
		return t.state.Finished()
	case 0, queue.OnRetry:
		return true
	default:
		return !t.state.Finished()
	}
}

// command does something to one task, if that makes a difference.
func (m *Machine) command(t *task, row *record.Row, c queue.Command) (changed bool) {
	w := why{on: c.Do, by: c.By, detail: c.Reason}
	switch {
	case t.state.Finished():
		return m.commandFinished(t, row, w)
	case t.state == queue.Running:
		return m.order(t, w)
	case c.Do == queue.OnPause && t.state != queue.Paused:
		m.transitions.change(t, row, queue.Paused, w)
	case c.Do == queue.OnCancel:
		m.transitions.change(t, row, queue.Cancelled, w)
	case c.Do == queue.OnResume && t.state == queue.Paused:
		m.transitions.change(t, row, m.transitions.pending(t, unix(row.RunAt)), w)
	case c.Do == queue.OnRetry && t.state == queue.Scheduled:
		row.RunAt = m.clock.time()
		m.transitions.change(t, row, m.transitions.pending(t, 0), w)
	case c.Do == queue.OnEdit:
		return m.edit(t, row, c.Edit, w)
	default:
		return false
	}
	return true
}

// order tells the worker of a running task what to do. Resuming takes a pause
// back that the worker has not obeyed yet.
func (m *Machine) order(t *task, w why) bool {
	held := t.lease
	to := w.on
	switch {
	case to == queue.OnResume && held.order == queue.OnPause:
		to = 0
	case to == queue.OnPause && held.order == 0, to == queue.OnCancel && held.order != queue.OnCancel:
	default:
		return false
	}
	if to == 0 {
		w = why{}
	}
	held.order, held.by, held.reason = to, w.by, w.detail
	held.row.Order, held.row.OrderBy, held.row.OrderReason = to, w.by, w.detail
	m.rows.write(t.id, &held.row)
	return true
}

func (m *Machine) commandFinished(t *task, row *record.Row, w why) (changed bool) {
	switch {
	case w.on == queue.OnForget:
		m.transitions.forget(t, row, w)
	case w.on == queue.OnRetry && t.state != queue.Succeeded:
		m.retry(t, row, w)
	default:
		return false
	}
	return true
}

// retry has a finished task begin anew. It keeps its age, and its history.
func (m *Machine) retry(t *task, row *record.Row, w why) {
	m.states.leave(t)
	row.Failures, row.Crashes, row.RunAt = 0, 0, m.clock.time()
	if !row.Deadline.After(m.clock.time()) {
		row.Deadline = time.Time{}
	}
	row.Progress = queue.Progress{} // its last token stays: what is noted of old leases is told by it
	m.fingerprints.remove(t)
	m.holds.join(t, row)
	m.deps.unsettled(t)
	m.transitions.put(t, row, m.transitions.pending(t, 0), w)
}
