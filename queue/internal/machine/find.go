package machine

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// page is how many tasks a page has if nothing is said.
const page = 100

// Find is as [queue.Store] says. It answers what has been decided, which may not
// be durable yet.
func (m *Machine) Find(_ context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	if p.Limit <= 0 {
		p.Limit = page
	}
	s := newSearch(f, p.After, p.Newest)
	for err == nil && !s.done && len(found) < p.Limit {
		if err = m.part(s, m.lockOpen); err == nil {
			found, err = m.views(s, found, p.Limit)
		}
	}
	return found, err
}

// lockOpen takes the lock to read. After an error it has not.
func (m *Machine) lockOpen() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return queue.ErrClosed
	}
	m.unblockKeys()
	return nil
}

// views appends what a search has found to a page.
func (m *Machine) views(s *search, found []queue.Task, limit int) ([]queue.Task, error) {
	if err := m.lockOpen(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, id := range s.ids {
		f, _ := m.match(s, id) // what cannot be read to tell is not found
		if f.task == nil {
			continue
		}
		if f.row == nil {
			row, _ := m.readable(f.task)
			f.row = &row
		}
		if found = append(found, m.view(f.task, f.row)); len(found) == limit {
			break
		}
	}
	return found, nil
}

// stateOf is the state of a task as others see it: also a limit of others' use
// holds it.
func (m *Machine) stateOf(t *task) queue.State {
	if t.state == queue.Waiting && m.lineOf(t).held(t) {
		return queue.Held
	}
	return t.state
}

// view is a task as others see it.
func (m *Machine) view(t *task, row *record.Row) queue.Task {
	task := row.Task
	if task.State != queue.Running {
		task.Lease = queue.Lease{}
	}
	// The row may share these with what the store keeps, and the task is the caller's.
	task.Payload, task.Checkpoint = bytes.Clone(row.Payload), bytes.Clone(row.Checkpoint)
	task.Result = bytes.Clone(row.Result)
	if t.state == queue.Running { // its row stays here
		task.Steps, task.After = slices.Clone(row.Steps), slices.Clone(row.After)
		task.Labels = maps.Clone(row.Labels)
	}
	task.State = m.stateOf(t)
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
	if t.damaged() {
		holds = append(holds, queue.Hold{Code: queue.HoldDamaged, What: t.damage.err.Error()})
	}
	if t.rare != nil {
		for _, id := range t.after(row) {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: m.known(id)})
		}
		if b := t.waitsBatch; b != nil && b.open > 0 {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: b.id.String()})
		}
		if g := t.group; g != nil && g.first() != t {
			holds = append(holds, queue.Hold{Code: queue.HoldGroup, What: g.name, State: g.first().state})
		}
	}
	l := m.lineOf(t)
	if l.settings.Paused != nil {
		holds = append(holds, queue.Hold{Code: queue.HoldQueuePaused, What: l.name})
	}
	if l.holdsSuspects() && suspected(row) {
		holds = append(holds, queue.Hold{Code: queue.HoldSuspect})
	}
	if n := l.settings.PerKey; row.Key != "" && n > 0 && l.order.Running(row.Key) >= n {
		holds = append(holds, queue.Hold{Code: queue.HoldKey, What: row.Key})
	}
	if l.order.Blocked(row.Key) {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyRate, What: row.Key})
	}
	return holds
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
