package machine

import (
	"cmp"
	"slices"
)

// Listen is as [queue.Store] says.
func (m *Machine) Listen(name string) (<-chan struct{}, func()) {
	name = cmp.Or(name, defaultQueue)
	ready := make(chan struct{}, 1)
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed {
		return ready, func() {}
	}
	m.queues.setListeners(name, append(m.queues.listeners[name], ready))
	return ready, func() {
		m.steps.mu.Lock()
		defer m.steps.mu.Unlock()
		m.queues.setListeners(name, slices.DeleteFunc(m.queues.listeners[name], func(c chan struct{}) bool { return c == ready }))
	}
}

// signal says that a task may have become claimable. It is called with most changes
// of a task, so it looks nothing up, and waits for nobody.
func (l *line) signal() {
	for _, ready := range l.listeners {
		select {
		case ready <- struct{}{}:
		default: // there is a signal that nobody has taken yet
		}
	}
}
