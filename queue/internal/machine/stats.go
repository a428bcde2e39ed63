package machine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Stats is as [queue.Store] says.
func (m *Machine) Stats(_ context.Context, now time.Time) (queue.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return queue.Stats{}, queue.ErrClosed
	}
	at := max(m.now, now.UnixNano())
	m.unblockKeys()
	s := queue.Stats{Queues: make(map[string]queue.Counts)}
	for name, l := range m.lines {
		s.Queues[name] = l.stats(at)
	}
	for _, w := range m.workers {
		if at-w.seen >= int64(workerLives) {
			continue
		}
		s.Workers = append(s.Workers, w.Worker)
	}
	slices.SortFunc(s.Workers, func(a, b queue.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

func (l *line) stats(at int64) queue.Counts {
	c := queue.Counts{States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Ended: l.ended}
	for _, state := range queue.States() {
		if n := l.states[state]; n > 0 {
			c.States[state] = n
		}
	}
	held := l.order.HeldByKey()
	for name, k := range l.keys { // whose rate lets them go again by then
		if k.blocked && k.due.at <= at && (l.settings.PerKey == 0 || l.order.Running(name) < l.settings.PerKey) {
			held -= l.order.QueuedBy(name)
		}
	}
	if l.settings.Paused != nil {
		held = l.order.Len()
	}
	if held > 0 {
		c.States[queue.Held] += held
		if c.States[queue.Waiting] -= held; c.States[queue.Waiting] == 0 {
			delete(c.States, queue.Waiting)
		}
	}
	t := l.oldest
	for t != nil && l.held(t) {
		t = t.next
	}
	if t != nil {
		c.Oldest = timeOf(t.since)
	}
	for tier, n := range l.tiers {
		if n > 0 {
			c.Tiers[stint.Lowest+stint.Priority(tier)] = n
		}
	}
	return c
}
