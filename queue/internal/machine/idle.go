package machine

import (
	"time"
)

// A queue is made when it is first named by a task or by settings. Programs name
// queues after what comes and goes, such as their customers, so one that has been of
// no use for long is forgotten. Nobody looks for such queues: whoever forgets finished
// tasks goes through all of them anyway.

// lineLives is how long a queue that is of no use is kept, with the counts of what has
// ended in it.
const lineLives = 24 * time.Hour

// tendLine forgets a queue that has been of no use for long.
func (m *Machine) tendLine(l *line) {
	switch {
	case m.needed(l):
		l.idle = 0
	case l.idle == 0:
		l.idle = m.clock.now
	case m.clock.now-l.idle >= int64(lineLives):
		m.total.leave(l)
		m.queues.remove(l)
	}
}

// needed reports whether a queue differs from one that is made anew when it is named
// again: by tasks, settings, those who listen, or starts that count against its rates.
// Ends of leases that a crash could take back make no difference: they are durable
// before any task is that is submitted later, and so before one starts.
func (m *Machine) needed(l *line) bool {
	for _, tasks := range l.states {
		if tasks > 0 {
			return true
		}
	}
	_, set := m.settings.byName[l.name]
	return set || len(l.listeners) > 0 || len(l.keys) > 0 || l.arrival.ns >= m.clock.now
}
