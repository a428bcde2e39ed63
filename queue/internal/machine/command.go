package machine

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Command is as [queue.Store] says.
func (m *Machine) Command(_ context.Context, now time.Time, c queue.Command) (changed int, err error) {
	switch c.Do {
	case queue.OnPause, queue.OnResume, queue.OnCancel, queue.OnRetry, queue.OnForget:
	default:
		return 0, fmt.Errorf("%w: a command cannot %s tasks", queue.ErrInvalid, c.Do)
	}
	if c.Limit < 0 {
		return 0, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, c.Limit)
	}
	if err := m.begin(now); err != nil {
		return 0, err
	}
	ids, err := m.matching(c.Filter, c.Do)
	for _, id := range ids {
		if err != nil || c.Limit > 0 && changed == c.Limit {
			break
		}
		var done bool
		if done, err = m.command(id, c); done {
			changed++
		}
	}
	if syncErr := m.end(); err == nil {
		err = syncErr
	}
	return changed, err
}

// matching returns the tasks that a filter finds and a command may concern, by
// their age.
func (m *Machine) matching(f queue.Filter, do queue.Trigger) (ids []queue.ID, err error) {
	if len(f.IDs) > 0 {
		for _, id := range f.IDs {
			row, err := m.any(id)
			if err != nil {
				continue // one that is gone is not found
			}
			if m.matches(&f, m.tasks[id], &row) {
				ids = append(ids, id)
			}
		}
		return ordered(ids), nil
	}
	for id, t := range m.tasks {
		row, err := m.row(t)
		if err != nil {
			return nil, err
		}
		if m.matches(&f, t, &row) {
			ids = append(ids, id)
		}
	}
	if do == queue.OnRetry || do == queue.OnForget {
		for _, e := range m.ends.all() {
			row, err := m.read(rowFinished, e.id)
			if err != nil {
				return nil, err
			}
			if m.matches(&f, nil, &row) {
				ids = append(ids, e.id)
			}
		}
	}
	return ordered(ids), nil
}

// ordered are IDs in their order, each one once.
func ordered(ids []queue.ID) []queue.ID {
	slices.SortFunc(ids, func(a, b queue.ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// command does something to one task, if that makes a difference.
func (m *Machine) command(id queue.ID, c queue.Command) (changed bool, err error) {
	w := why{on: c.Do, by: c.By, detail: c.Reason}
	t := m.tasks[id]
	if t == nil {
		return m.commandFinished(id, w)
	}
	row, err := m.row(t)
	if err != nil {
		return false, err
	}
	switch {
	case c.Do == queue.OnForget:
		return false, nil // it is not finished
	case t.state == queue.Running:
		return m.order(t, w), nil
	case c.Do == queue.OnPause && t.state != queue.Paused:
		m.change(t, &row, queue.Paused, w)
	case c.Do == queue.OnCancel:
		m.change(t, &row, queue.Cancelled, w)
	case c.Do == queue.OnResume && t.state == queue.Paused:
		t.due.at = unix(row.RunAt)
		m.change(t, &row, m.pending(t, t.due.at), w)
	case c.Do == queue.OnRetry && t.state == queue.Scheduled:
		row.RunAt = m.time()
		t.due.at = m.now
		m.change(t, &row, m.pending(t, 0), w)
	default:
		return false, nil
	}
	return true, nil
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
	held.row.Order = to
	m.write(t, &held.row)
	return true
}

func (m *Machine) commandFinished(id queue.ID, w why) (changed bool, err error) {
	row, err := m.read(rowFinished, id)
	if err != nil {
		return false, err
	}
	switch {
	case w.on == queue.OnForget:
		m.forget(&row, w)
	case w.on == queue.OnRetry && row.State != queue.Succeeded:
		m.retry(&row, w)
	default:
		return false, nil
	}
	return true, nil
}

// retry has a finished task begin anew. It keeps its age, and its history.
func (m *Machine) retry(row *record.Row, w why) {
	m.unretain(row)
	m.journal.set(rowFinished+string(row.ID[:]), nil)
	row.Failures, row.Crashes, row.RunAt = 0, 0, m.time()
	if !row.Deadline.After(m.time()) {
		row.Deadline = time.Time{}
	}
	row.Lease, row.Progress = queue.Lease{}, queue.Progress{}
	m.cleared(row)
	t := m.admit(row)
	m.await(t, row)
	to := m.pending(t, 0)
	m.step(row, to, w)
	m.enter(t, to)
	m.write(t, row)
}

// forget removes a finished task, and cancels those that waited for it to
// succeed, because it never will.
func (m *Machine) forget(row *record.Row, w why) {
	m.unretain(row)
	m.tellForgotten(row, w)
	m.journal.set(rowFinished+string(row.ID[:]), nil)
	if row.Unique != "" {
		m.journal.set(rowUnique+row.Queue+"\x00"+row.Unique, nil)
	}
	m.cleared(row)
	for _, t := range slices.Clone(m.dependents[row.ID]) {
		m.revise(t, queue.Cancelled, why{
			on: queue.OnCancel, by: w.by, detail: fmt.Sprintf("task %s, which has to succeed first, was forgotten", row.ID),
		})
	}
}
