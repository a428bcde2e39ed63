package machine

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// page is how many tasks a page has if nothing is said.
const page = 100

// Find is as [queue.Store] says. It answers what has been decided, which may not
// be durable yet.
func (m *Machine) Find(_ context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, queue.ErrClosed
	}
	if p.Limit <= 0 {
		p.Limit = page
	}
	m.unblockKeys()
	ids := ordered(m.candidates(&f))
	if p.Newest {
		slices.Reverse(ids)
	}
	for _, id := range ids {
		if order := bytes.Compare(id[:], p.After[:]); !p.After.IsZero() && (order == 0 || (order < 0) != p.Newest) {
			continue
		}
		row, err := m.any(id)
		if err != nil {
			if len(f.IDs) > 0 {
				continue
			}
			return nil, err
		}
		t := m.tasks[id]
		if !m.matches(&f, t, &row) {
			continue
		}
		if found = append(found, m.view(t, &row)); len(found) == p.Limit {
			break
		}
	}
	return found, nil
}

// candidates are the tasks that a filter may find.
func (m *Machine) candidates(f *queue.Filter) (ids []queue.ID) {
	if len(f.IDs) > 0 {
		return slices.Clone(f.IDs)
	}
	for id := range m.tasks {
		ids = append(ids, id)
	}
	for _, e := range m.ends.all() {
		ids = append(ids, e.id)
	}
	return ids
}

// matches reports whether a filter finds a task, of which t is what is in
// memory, nil if it is finished.
func (m *Machine) matches(f *queue.Filter, t *task, row *record.Row) bool {
	switch {
	case len(f.IDs) > 0 && !slices.Contains(f.IDs, row.ID),
		f.Queue != "" && f.Queue != row.Queue,
		f.Kind != "" && f.Kind != row.Kind,
		f.Key != "" && f.Key != row.Key,
		f.Group != "" && f.Group != row.Group,
		!f.Batch.IsZero() && f.Batch != row.Batch,
		f.Worker != "" && (row.State != queue.Running || f.Worker != row.Lease.Worker),
		f.Error != "" && !strings.Contains(row.Error, f.Error),
		!f.From.IsZero() && row.Submitted.Before(f.From),
		!f.To.IsZero() && !row.Submitted.Before(f.To),
		len(f.States) > 0 && !slices.Contains(f.States, m.stateOf(t, row)):
		return false
	}
	for name, value := range f.Labels {
		if got, ok := row.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// stateOf is the state of a task as others see it: also a limit of others' use
// holds it.
func (m *Machine) stateOf(t *task, row *record.Row) queue.State {
	if t != nil && t.state == queue.Waiting && t.line.held(t) {
		return queue.Held
	}
	return row.State
}

// view is a task as others see it.
func (m *Machine) view(t *task, row *record.Row) queue.Task {
	task := row.Task
	if task.State != queue.Running {
		task.Lease = queue.Lease{}
	}
	if t == nil {
		return task
	}
	if t.state == queue.Running { // its row stays here, and the task is the caller's
		task.Steps, task.After = slices.Clone(row.Steps), slices.Clone(row.After)
		task.Payload, task.Checkpoint = bytes.Clone(row.Payload), bytes.Clone(row.Checkpoint)
		task.Labels = maps.Clone(row.Labels)
	}
	task.State = m.stateOf(t, row)
	if task.State == queue.Held {
		task.Holds = m.holds(t, row)
	}
	if l := t.leased(); l != nil {
		task.Order = l.order
	}
	return task
}

// holds are why a task is held.
func (m *Machine) holds(t *task, row *record.Row) (holds []queue.Hold) {
	if t.rare != nil {
		for _, id := range t.after(row) {
			state := m.presentState(id, t.waitsFor[id])
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: state})
		}
		if b := t.waitsBatch; b != nil && b.open > 0 {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: b.id.String()})
		}
		if g := t.group; g != nil && g.first() != t {
			holds = append(holds, queue.Hold{Code: queue.HoldGroup, What: g.name, State: g.first().state})
		}
	}
	l := t.line
	if l.settings.Paused != nil {
		holds = append(holds, queue.Hold{Code: queue.HoldQueuePaused, What: l.name})
	}
	if n := l.settings.PerKey; t.key != "" && n > 0 && l.order.Running(t.key) >= n {
		holds = append(holds, queue.Hold{Code: queue.HoldKey, What: t.key})
	}
	if t.key != "" && l.order.Blocked(t.key) {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyRate, What: t.key})
	}
	return holds
}

// presentState is that of a task that is waited for; finished is what it is if
// it is not in memory.
func (m *Machine) presentState(id queue.ID, finished queue.State) queue.State {
	if t := m.tasks[id]; t != nil {
		return t.state
	}
	return finished
}

// after are the tasks that have to succeed first and have not yet.
func (t *task) after(row *record.Row) (ids []queue.ID) {
	for _, id := range row.After {
		if _, waits := t.waitsFor[id]; waits && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
