package machine

import (
	"context"
	"errors"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// page is the default number of tasks of a page.
const page = 100

// Find is as [queue.Store] says. It returns the state in memory, which may not be durable
// yet unless the page asks for that.
func (m *Machine) Find(ctx context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	if p.Limit <= 0 {
		p.Limit = page
	}
	s, left := newSearch(f, p.After, p.Newest), newAllowance(p.Limit, p.Bytes)
	for err == nil && !s.done && left.any() {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, "the search was not complete")
		}
		if err = m.searchPart(s, m.steps.lockOpen); err == nil {
			found, err = m.pageOf(s, found, &left)
		}
	}
	if err == nil && p.Durable {
		err = m.steps.durable(ctx)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// pageOf appends the tasks that a part of a search has found to a page, until it is full.
func (m *Machine) pageOf(s *search, found []queue.Task, left *allowance) ([]queue.Task, error) {
	if err := m.steps.lockOpen(); err != nil {
		return nil, err
	}
	defer m.steps.mu.Unlock()
	for _, id := range s.ids {
		if !left.any() {
			break
		}
		f, err := m.finder.match(s, id) // a task whose row cannot be read is not found
		if errors.Is(err, journal.ErrAway) {
			return nil, err
		}
		if f.task == nil {
			continue
		}
		if f.row == nil {
			row, err := m.rows.readable(f.task)
			if errors.Is(err, journal.ErrAway) {
				return nil, err
			}
			f.row = &row
		}
		found = append(found, m.views.view(f.task, f.row))
		left.take(&found[len(found)-1])
	}
	return found, nil
}

// searchPart finds the next candidates of a search. lock takes the lock of the machine.
func (m *Machine) searchPart(s *search, lock func() error) error {
	if s.filter.IDs != nil {
		n := min(s.most, len(s.named))
		s.ids, s.named = s.named[:n:n], s.named[n:]
		s.done = len(s.named) == 0
		return nil
	}
	if err := lock(); err != nil {
		return err
	}
	m.finder.nextCandidates(s)
	m.steps.using.Add(1) // Close waits with closing the rows
	m.steps.mu.Unlock()
	defer m.steps.using.Done()
	m.finder.dropMismatches(s)
	return nil
}

// Explain is as [queue.Store] says.
func (m *Machine) Explain(_ context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed.Load() {
		return nil, queue.ErrClosed
	}
	m.keyRates.unblock()
	return m.reasons.of(id, m.clock.latest(now))
}

// Stats is as [queue.Store] says.
func (m *Machine) Stats(_ context.Context, now time.Time) (queue.Stats, error) {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed.Load() {
		return queue.Stats{}, queue.ErrClosed
	}
	at := m.clock.latest(now)
	m.keyRates.unblock()
	s := queue.Stats{
		Queues: make(map[string]queue.Counts),
		Total:  queue.Total{Running: m.total.running, Limits: m.settings.totals, Keys: m.settings.keysWithTotals()},
	}
	for name, q := range m.queues.byName {
		s.Queues[name] = m.counts.of(q, at)
	}
	m.settings.addRunningKeys(s.Queues)
	s.Workers = m.workerSet.live(at)
	if m.cfg.Room != nil {
		if err := m.cfg.Room(); err != nil {
			s.Refuses = err.Error()
		}
	}
	return s, nil
}

// Watch is as [queue.Store] says.
func (m *Machine) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	m.steps.mu.Lock()
	if m.steps.closed.Load() {
		m.steps.mu.Unlock()
		return queue.ErrClosed
	}
	w := m.watchers.add(m.cfg.WatchBuffer)
	m.steps.mu.Unlock()
	defer func() {
		m.steps.mu.Lock()
		defer m.steps.mu.Unlock()
		m.watchers.remove(w)
	}()
	begun()
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return queue.ErrClosed
			}
			fn(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
