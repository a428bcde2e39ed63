package machine

import (
	"context"
	"time"

	"github.com/stintgo/stint/queue"
)

// Stats is as [queue.Store] says.
func (m *Machine) Stats(_ context.Context, now time.Time) (queue.Stats, error) {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed {
		return queue.Stats{}, queue.ErrClosed
	}
	at := m.clock.latest(now)
	m.keyRates.unblock()
	s := queue.Stats{
		Queues: make(map[string]queue.Counts),
		Total:  queue.Total{Running: m.total.running, Limits: m.settings.totals, Keys: m.settings.keysWithTotals()},
	}
	for name, l := range m.queues.byName {
		s.Queues[name] = m.counts.of(l, at)
	}
	s.Workers = m.workerSet.live(at)
	return s, nil
}
