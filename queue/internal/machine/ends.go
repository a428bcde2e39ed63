package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// What is kept of finished tasks if nothing is set.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
)

// keepReopened is how much longer tasks are kept whose age has passed while the store
// was closed. If it was not closed for as long as its clock says, because that is ahead,
// there is time to set the clock right before they are forgotten.
const keepReopened = time.Hour

// keep is what is set for tasks that have finished in a state, with the defaults.
func (l *line) keep(of queue.State) queue.Retention {
	r, age := l.settings.Keep, keepAge
	if of == queue.Dead {
		r, age = l.settings.KeepDead, keepDeadAge
	}
	if r.Age == 0 {
		r.Age = age
	}
	if r.Count == 0 {
		r.Count = keepCount
	}
	return r
}

// expired returns the finished task of a queue that is to be forgotten first,
// nil if there is none; whether that is now; and if not, when.
func (m *Machine) expired(l *line, of queue.State) (t *task, now bool, at int64) {
	ends := l.ends(of)
	if ends.n == 0 {
		return nil, false, 0
	}
	t, r := m.tasks.at(ends.first), l.keep(of)
	if at = t.at + int64(r.Age); at > m.clock.away.from && at <= m.clock.away.to {
		at = m.clock.away.to + int64(keepReopened)
	}
	return t, ends.n > r.Count || at <= m.clock.now, at
}

// expel forgets a task that is kept no longer. Its row is read only if there is
// more to it, or somebody to tell.
func (m *Machine) expel(t *task, w why) {
	if !m.watchers.any() && !t.unique {
		m.transitions.drop(t, w)
		return
	}
	row, _ := m.rows.readable(t) // that it is damaged keeps nobody from forgetting it
	m.transitions.forget(t, &row, w)
	m.uniqueNames.keep(&row)
}

// tendEnds forgets finished tasks that are kept no longer. It returns when the
// next one is, and what is left of the limit.
func (m *Machine) tendEnds(limit int) (next int64, left int) {
	for _, l := range m.queues.all() {
		for _, of := range []queue.State{queue.Succeeded, queue.Dead} {
			for limit > 0 {
				t, now, at := m.expired(l, of)
				if !now {
					next = soonest(next, at)
					break
				}
				limit--
				if !m.deps.pin(t) {
					m.expel(t, why{on: queue.OnForget})
					m.passes.advance()
				}
			}
		}
		m.tendLine(l)
	}
	return next, limit
}
