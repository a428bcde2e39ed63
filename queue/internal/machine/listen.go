package machine

import (
	"cmp"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// Listen is as [queue.Store] says.
func (m *Machine) Listen(name string) (<-chan struct{}, func()) {
	name = cmp.Or(name, defaultQueue)
	ready := make(chan struct{}, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ready, func() {}
	}
	m.tellOf(name, append(m.listeners[name], ready))
	return ready, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tellOf(name, slices.DeleteFunc(m.listeners[name], func(c chan struct{}) bool { return c == ready }))
	}
}

// tellOf has these told of a queue. The queue need not be there, and is not made: a
// name that is only listened to is forgotten with its last listener.
func (m *Machine) tellOf(name string, listeners []chan struct{}) {
	if len(listeners) == 0 {
		listeners = nil
		shrink.Delete(&m.listeners, &m.peaks.listeners, name)
	} else {
		m.listeners[name] = listeners
	}
	if l := m.lines[name]; l != nil {
		l.listeners = listeners
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
