package machine

import (
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// cancel cancels a task for a cascade. If its row cannot be read the task stays in its
// list until it can be.
func (m *Machine) cancel(t *task, c *cascade) {
	row, err := m.rows.row(t)
	if err != nil {
		m.states.quarantine(t, err)
		return
	}
	m.cancelOrphan(t, &row, c)
}

// cancelOrphan cancels a task for a cascade, and those that come after it in turn.
func (m *Machine) cancelOrphan(t *task, row *record.Row, c *cascade) {
	id, seq := t.id, t.place.Ticket()
	m.change(t, row, queue.Cancelled, c.why())
	m.deps.orphan(id, seq, false, c.By)
}
