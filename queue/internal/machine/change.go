package machine

import (
	"cmp"
	"fmt"
	"slices"

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
func (m *Machine) step(row *record.Row, to queue.State, w why) {
	from := row.State
	if !queue.Allowed(from, w.on, to) {
		panic(fmt.Sprintf("machine: task %s: %s from %s to %s is not in the table", row.ID, w.on, from, to))
	}
	row.State, row.Changed = to, m.time()
	if len(row.Steps) == queue.MaxSteps {
		row.Steps = slices.Delete(row.Steps, 1, 2)
	}
	row.Steps = append(row.Steps, queue.Step{
		At: row.Changed, On: w.on, To: to, By: w.by, Token: w.token, Detail: w.detail,
	})
	m.tell(row, from)
}

// change moves an unfinished task to another state, in its row and in memory.
func (m *Machine) change(t *task, row *record.Row, to queue.State, w why) {
	m.step(row, to, w)
	m.leave(t)
	if to.Finished() {
		m.finish(t, row)
		return
	}
	m.enter(t, to)
	m.write(t, row)
}

// pending is the state in which a task belongs that may start from runAt on.
func (m *Machine) pending(t *task, runAt int64) queue.State {
	switch {
	case runAt > m.now:
		return queue.Scheduled
	case !t.free():
		return queue.Held
	default:
		return queue.Waiting
	}
}

// enter puts a task that is in no state into one.
func (m *Machine) enter(t *task, to queue.State) {
	l := t.line
	t.state = to
	l.states[to]++
	switch to {
	case queue.Scheduled:
		m.due.set(&t.due, t.due.at)
	case queue.Held:
		l.tiers[t.tier]++
	case queue.Waiting:
		l.order.PushAged(&t.place, t.tier, t.key, t.kind, 1, t.seq)
		l.tiers[t.tier]++
		l.queued(t, m.now)
		l.signal()
	default:
	}
}

// leave takes a task out of its state.
func (m *Machine) leave(t *task) {
	l := t.line
	l.states[t.state]--
	switch t.state {
	case queue.Scheduled:
		m.due.stop(&t.due)
	case queue.Held:
		l.tiers[t.tier]--
	case queue.Waiting:
		l.order.Remove(&t.place)
		l.unqueued(t)
		l.tiers[t.tier]--
	case queue.Running:
		m.due.stop(&t.due)
		t.lease = nil
		l.running--
		l.passes++
		l.order.Finish(t.key)
		l.signal()
	default:
	}
	t.state = 0
}

// finish takes a task that is finished out of the memory, and lets those go on
// that waited for it.
func (m *Machine) finish(t *task, row *record.Row) {
	delete(m.tasks, t.id)
	m.due.stop(&t.expiry)
	m.journal.set(rowTask+string(t.id[:]), nil)
	m.retain(t.line, row)
	if t.rare == nil {
		m.settled(t.id, row.State)
		return
	}
	if t.uniqueName != "" {
		delete(m.unique, uniqueKey{t.line.name, t.uniqueName})
	}
	if g := t.group; g != nil {
		m.leaveGroup(t)
	}
	if t.batch != nil {
		m.leaveBatch(t.batch)
	}
	m.forgetWaits(t)
	m.settled(t.id, row.State)
}

// settled tells those that wait for a task how it ended.
func (m *Machine) settled(id queue.ID, state queue.State) {
	waiting, ok := m.dependents[id]
	if !ok {
		return
	}
	if state == queue.Succeeded {
		delete(m.dependents, id)
	}
	for _, t := range waiting {
		if state == queue.Succeeded {
			delete(t.waitsFor, id)
			m.unhold(t)
		} else {
			t.waitsFor[id] = state
		}
	}
}

// forgetWaits ends the wait of a task for others.
func (m *Machine) forgetWaits(t *task) {
	for id := range t.waitsFor {
		rest := slices.DeleteFunc(m.dependents[id], func(d *task) bool { return d == t })
		if m.dependents[id] = rest; len(rest) == 0 {
			delete(m.dependents, id)
		}
	}
	if b := t.waitsBatch; b != nil {
		b.waiting = slices.DeleteFunc(b.waiting, func(d *task) bool { return d == t })
		m.dropBatch(b)
	}
}

// unhold has a task go on that was held by what it waits for itself, if nothing
// of that is left.
func (m *Machine) unhold(t *task) {
	if t.state == queue.Held && t.free() {
		m.revise(t, queue.Waiting, why{on: queue.OnUnhold})
	}
}

// revise is change for a task whose row is not at hand. If it cannot be read
// the task stays as it is: who asks for it gets the error.
func (m *Machine) revise(t *task, to queue.State, w why) {
	row, err := m.row(t)
	if err != nil {
		m.journal.fail(err)
		return
	}
	m.change(t, &row, to, w)
}

// joinGroup makes a task part of its group, behind those that are older, but
// not before one that runs.
func (m *Machine) joinGroup(t *task, name string) {
	g := t.line.groups[name]
	if g == nil {
		g = &group{name: name}
		t.line.groups[name] = g
	}
	t.more().group = g
	i := len(g.tasks)
	for i > 0 && g.tasks[i-1].seq > t.seq && g.tasks[i-1].state != queue.Running {
		i--
	}
	g.tasks = slices.Insert(g.tasks, i, t)
	if i == 0 && len(g.tasks) > 1 && g.tasks[1].state == queue.Waiting {
		m.revise(g.tasks[1], queue.Held, why{on: queue.OnHold})
	}
}

// regroup gives a task that has run, and is about to wait again, its place by
// its age: an older one may have been retried meanwhile.
func (m *Machine) regroup(t *task) {
	g := t.group
	g.tasks = slices.DeleteFunc(g.tasks, func(d *task) bool { return d == t })
	i, _ := slices.BinarySearchFunc(g.tasks, t.seq, func(d *task, seq uint64) int { return cmp.Compare(d.seq, seq) })
	g.tasks = slices.Insert(g.tasks, i, t)
}

func (m *Machine) leaveGroup(t *task) {
	g := t.group
	i := slices.Index(g.tasks, t)
	g.tasks = slices.Delete(g.tasks, i, i+1)
	t.group = nil
	if len(g.tasks) == 0 {
		delete(t.line.groups, g.name)
	} else if i == 0 {
		m.unhold(g.first())
	}
}

// batchOf returns a batch, made if there is none.
func (m *Machine) batchOf(id queue.ID) *batch {
	b := m.batches[id]
	if b == nil {
		b = &batch{id: id}
		m.batches[id] = b
	}
	return b
}

// joinBatch counts a task of a batch, and holds those that wait for it again.
func (m *Machine) joinBatch(t *task, id queue.ID) {
	b := m.batchOf(id)
	t.more().batch = b
	if b.open++; b.open == 1 {
		for _, d := range slices.Clone(b.waiting) {
			if d.state == queue.Waiting {
				m.revise(d, queue.Held, why{on: queue.OnHold})
			}
		}
	}
}

// leaveBatch counts one task of a batch less that is unfinished.
func (m *Machine) leaveBatch(b *batch) {
	if b.open--; b.open == 0 {
		for _, t := range slices.Clone(b.waiting) {
			m.unhold(t)
		}
	}
	m.dropBatch(b)
}

// dropBatch forgets a batch that nothing refers to.
func (m *Machine) dropBatch(b *batch) {
	if b.open == 0 && len(b.waiting) == 0 {
		delete(m.batches, b.id)
	}
}
