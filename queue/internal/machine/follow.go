package machine

import (
	"container/list"

	"github.com/stintgo/stint/queue"
)

// followers are tasks that wait for the same, in the order in which they began
// to. Each knows its place, so that it can stop.
type followers = list.List

// batch is what is unfinished of a batch.
type batch struct {
	id      queue.ID
	open    int       // tasks
	waiting followers // for there to be none
}

// await has a task wait for those that it comes after, and for a batch unless it
// is zero.
func (m *Machine) await(t *task, after []queue.ID, afterBatch queue.ID) {
	for _, id := range after {
		// One that is forgotten had succeeded: the others take those that wait
		// for them along.
		if first := m.earlier(t, id); first == nil || first.state == queue.Succeeded {
			continue
		}
		r := t.more()
		if r.waitsFor == nil {
			r.waitsFor = make(map[queue.ID]*list.Element)
		}
		if r.waitsFor[id] != nil {
			continue
		}
		of := m.dependents[id]
		if of == nil {
			of = new(followers)
			m.dependents[id] = of
		}
		r.waitsFor[id] = of.PushBack(t)
	}
	if !afterBatch.IsZero() {
		b := m.batchOf(afterBatch)
		t.more().waitsBatch = b
		t.waits = b.waiting.PushBack(t)
	}
}

// earlier returns the task that one comes after, nil if that is forgotten. A
// younger one is another, which was given its ID since.
func (m *Machine) earlier(t *task, id queue.ID) *task {
	if first := m.tasks.get(id); first != nil && first.place.Ticket() < t.place.Ticket() {
		return first
	}
	return nil
}

// settled lets those go on that wait for a task to succeed, if it has.
func (m *Machine) settled(id queue.ID, state queue.State) {
	of := m.dependents[id]
	if of == nil || state != queue.Succeeded {
		return
	}
	delete(m.dependents, id)
	for e := of.Front(); e != nil; e = e.Next() {
		t := e.Value.(*task)
		delete(t.waitsFor, id)
		m.unhold(t)
	}
}

// forgetWaits ends the wait of a task for others.
func (m *Machine) forgetWaits(t *task) {
	for id, e := range t.waitsFor {
		of := m.dependents[id]
		if of.Remove(e); of.Len() == 0 {
			delete(m.dependents, id)
		}
	}
	if b := t.waitsBatch; b != nil {
		b.waiting.Remove(t.waits)
		m.dropBatch(b)
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
	if b.open++; b.open > 1 {
		return
	}
	for e := b.waiting.Front(); e != nil; e = e.Next() {
		if d := e.Value.(*task); d.state == queue.Waiting {
			m.revise(d, queue.Held, why{on: queue.OnHold})
		}
	}
}

// leaveBatch counts one task of a batch less that is unfinished.
func (m *Machine) leaveBatch(b *batch) {
	if b.open--; b.open == 0 {
		for e := b.waiting.Front(); e != nil; e = e.Next() {
			m.unhold(e.Value.(*task))
		}
	}
	m.dropBatch(b)
}

// dropBatch forgets a batch that nothing refers to.
func (m *Machine) dropBatch(b *batch) {
	if b.open == 0 && b.waiting.Len() == 0 {
		delete(m.batches, b.id)
	}
}

// unhold has a task go on that was held by what it waits for itself, if nothing
// of that is left.
func (m *Machine) unhold(t *task) {
	if t.state == queue.Held && t.free() {
		m.revise(t, queue.Waiting, why{on: queue.OnUnhold})
	}
}
