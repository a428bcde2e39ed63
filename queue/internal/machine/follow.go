package machine

import (
	"github.com/stintgo/stint/queue"
)

// unhold has a task go on that was held by what it waits for itself, if nothing
// of that is left.
func (m *Machine) unhold(t *task) {
	if t.state == queue.Held && t.free() {
		m.revise(t, queue.Waiting, why{on: queue.OnUnhold})
	}
}
