package machine

import (
	"maps"
	"time"

	"github.com/stintgo/stint/queue"
)

// worker is one who has been heard of.
type worker struct {
	queue.Worker
	seen int64
}

const (
	// workerLives is how long a worker counts as alive that is not heard of.
	workerLives = time.Minute
	// seenLives is how long it is known who last handled a kind of which there have
	// been no tasks.
	seenLives = 24 * time.Hour
)

// handles is what a worker knows: a kind of a queue.
type handles struct{ queue, kind string }

// see notes that a worker handles kinds of a queue. There need not be such a
// queue: whoever asks for one that has never had a task makes none.
func (m *Machine) see(worker, name string, kinds []string) {
	if name == "" {
		name = defaultQueue
	}
	for _, kind := range kinds {
		m.seen[handles{name, kind}] = queue.Seen{Worker: worker, At: m.clock.time()}
	}
}

// sweepWorkers forgets, from time to time, workers that have not been heard of for
// long: each start of a process is a new one.
func (m *Machine) sweepWorkers() {
	if m.clock.now-m.swept < int64(workerLives) {
		return
	}
	m.swept = m.clock.now
	maps.DeleteFunc(m.workers, func(_ string, w *worker) bool { return m.clock.now-w.seen >= int64(workerLives) })
	maps.DeleteFunc(m.seen, func(h handles, s queue.Seen) bool {
		return m.clock.now-s.At.UnixNano() >= int64(seenLives) && !m.hasKind(h)
	})
}

// hasKind reports whether there have been tasks of a kind since the machine was
// opened.
func (m *Machine) hasKind(h handles) bool {
	l := m.queues.byName[h.queue]
	if l == nil {
		return false
	}
	_, has := l.kinds[h.kind]
	return has
}
