package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// why is what makes a task change its state.
type why struct {
	on     queue.Trigger
	by     string // a worker, or who said so
	token  queue.Token
	detail string
}

// step notes a change of state in a row, and tells the watchers.
func (m *Machine) step(l *line, row *record.Row, to queue.State, w why) {
	m.stepAt(l, row, to, w, m.clock.time())
}

// stepAt is step for a change that was at another time than now.
func (m *Machine) stepAt(l *line, row *record.Row, to queue.State, w why, at time.Time) {
	from := row.State
	if !queue.Allowed(from, w.on, to) {
		panic(fmt.Sprintf("machine: task %s: %s from %s to %s is not in the table", row.ID, w.on, from, to))
	}
	row.State, row.Changed = to, at
	if len(row.Steps) == queue.MaxSteps {
		row.Steps = slices.Delete(row.Steps, 1, 2)
	}
	row.Steps = append(row.Steps, queue.Step{
		At: row.Changed, On: w.on, To: to, By: w.by, Token: w.token, Detail: w.detail,
	})
	l.count(row, w.on)
	m.watchers.tell(row, from)
}

// change moves a task to another state, in its row and in memory.
func (m *Machine) change(t *task, row *record.Row, to queue.State, w why) {
	held := t.leased()
	m.step(m.queues.of(t), row, to, w)
	m.states.leave(t)
	m.states.enter(t, row, to)
	m.rows.write(t.id, row)
	if held != nil {
		m.ended(m.queues.of(t), held)
	}
	if to.Finished() {
		m.finish(t)
	}
}

// ended marks the end of a lease, if it has to be durable before another one may
// begin in its place.
func (m *Machine) ended(l *line, held *lease) {
	if held.suspect {
		l.suspectEnd = m.journal.mark()
	}
	if held.remote && l.limited() {
		l.roomEnd = m.journal.mark()
	}
	if held.remote && m.slots.shared() {
		m.slots.roomEnd = m.journal.mark()
	}
}

// revise is change for a task whose row is not at hand. If it cannot be read the
// task is set aside instead.
func (m *Machine) revise(t *task, to queue.State, w why) {
	row, err := m.rows.row(t)
	if err != nil {
		m.states.quarantine(t, err)
		return
	}
	m.change(t, &row, to, w)
}

// pending is the state in which a task belongs that may start from runAt on.
func (m *Machine) pending(t *task, runAt int64) queue.State {
	switch {
	case runAt > m.clock.now:
		return queue.Scheduled
	case !t.free():
		return queue.Held
	default:
		return queue.Waiting
	}
}

// finish has a task that is finished take part in nothing any more, and lets
// those go on that waited for it.
func (m *Machine) finish(t *task) {
	if r := t.rare; r != nil {
		m.states.deadlines.remove(t)
		if r.group != nil {
			if next := m.queues.of(t).leaveGroup(t); next != nil {
				m.unhold(next)
			}
		}
		if r.batch != nil {
			m.deps.leaveBatch(r.batch)
		}
		m.deps.forgetWaits(t)
		t.rare = nil
		if r.poison != nil {
			t.rare = &rare{poison: r.poison}
		}
	}
	m.deps.settled(t)
}
