package machine

import (
	"context"
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
	at := m.clock.latest(now)
	m.keyRates.unblock()
	s := queue.Stats{
		Queues: make(map[string]queue.Counts),
		Total:  queue.Total{Running: m.total.running, Limits: m.settings.totals, Keys: m.settings.keysWithTotals()},
	}
	for name, l := range m.queues.byName {
		s.Queues[name] = m.count(l, at)
	}
	s.Workers = m.workerSet.live(at)
	return s, nil
}

func (m *Machine) count(l *line, at int64) queue.Counts {
	c := queue.Counts{
		States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Damaged: l.damaged, Ended: l.ended,
		Limits: l.inForce, Keys: m.settings.keysWithLimits(l),
	}
	c.Limits.Paused = clonePause(c.Limits.Paused)
	for _, state := range queue.States() {
		if n := l.states[state]; n > 0 {
			c.States[state] = n
		}
	}
	held := l.order.HeldByKey()
	l.blocked.before(at, func(k *keyRate) { // whose rates let them go again by then
		if !l.order.AtLimit(k.key) && !m.keyTotals.full(k.key) {
			held -= l.order.QueuedBy(k.key)
		}
	})
	held += m.suspectsHeld(l, at)
	if l.settings.Paused != nil {
		held = l.order.Len()
	}
	if held > 0 {
		c.States[queue.Held] += held
		if c.States[queue.Waiting] -= held; c.States[queue.Waiting] == 0 {
			delete(c.States, queue.Waiting)
		}
	}
	if at, ok := m.oldest(l); ok {
		c.Oldest = timeOf(at)
	}
	for tier, n := range l.tiers {
		if n > 0 {
			c.Tiers[stint.Lowest+stint.Priority(tier)] = n
		}
	}
	return c
}

// oldest returns since when the task of a queue has been Waiting that has been
// for longest. It looks at so many that are held by limits; if
// there are more, the oldest has been Waiting for less long than it says.
func (m *Machine) oldest(l *line) (at int64, ok bool) {
	const most = 4096
	if l.settings.Paused != nil {
		return 0, false
	}
	no := l.waiting.first
	for n := 0; no != 0; n++ {
		t := m.tasks.at(no)
		if !l.held(t) || n == most {
			return t.at, true
		}
		no = t.next
	}
	return 0, false
}
