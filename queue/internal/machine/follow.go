package machine

import (
	"container/list"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// followers are tasks that have something in common, in the order in which that
// came about. Each knows its place, so that it can be taken out.
type followers = list.List

// predecessor is a task that unfinished tasks come after.
type predecessor struct {
	id         queue.ID
	unfinished bool
	pinned     bool     // it is finished, and not in the list of those that retention forgets
	success    *waiters // tasks that have it in After, unless it has succeeded
	end        waiters  // tasks that have it in AfterAny: a retry of it holds them again
	dependents int      // entries of tasks' waits
}

// wait is one thing that a task comes after.
type wait struct {
	on *predecessor
	in *waiters // that the task is in; nil: on has succeeded
	at *list.Element
}

// holds reports whether the wait keeps its task from starting.
func (w *wait) holds() bool {
	if w.in == &w.on.end {
		return w.on.unfinished
	}
	return w.in != nil
}

// batch is what is unfinished of a batch.
type batch struct {
	id      queue.ID
	open    int     // tasks
	waiting waiters // for there to be none
}

// await has a task wait for those that it comes after, and for a batch unless it
// is zero.
func (m *Machine) await(t *task, s *queue.Spec) {
	for _, id := range s.After {
		m.awaitSuccess(t, id)
	}
	for _, id := range s.AfterAny {
		first := m.earlier(t, id)
		if first == nil || slices.ContainsFunc(t.waiting(), func(w wait) bool { return w.on.id == id && w.in == &w.on.end }) {
			continue
		}
		p := m.predecessor(first)
		m.addWait(t, p, &p.end)
	}
	if !s.AfterBatch.IsZero() {
		b := m.batchOf(s.AfterBatch)
		t.more().waitsBatch = b
		t.atBatch = b.waiting.PushBack(t)
	}
}

// awaitSuccess has a task wait for the success of one that it comes after, unless
// that is forgotten: it had succeeded then, or has cancelled those that came after it.
func (m *Machine) awaitSuccess(t *task, id queue.ID) {
	if w := m.orphanedBy(t, id); w != nil {
		m.addWait(t, &predecessor{id: id, success: w}, w)
		return
	}
	first := m.earlier(t, id)
	if first == nil || slices.ContainsFunc(t.waiting(), func(w wait) bool { return w.on.id == id && w.in != &w.on.end }) {
		return
	}
	p := m.predecessor(first)
	if first.state == queue.Succeeded {
		m.addWait(t, p, nil)
		return
	}
	m.unpin(p) // it cannot be kept for long: t would wait for as long
	m.addWait(t, p, p.success)
}

// addWait has a task come after another one, in a list unless that is nil.
func (m *Machine) addWait(t *task, p *predecessor, in *waiters) {
	p.dependents++
	w := wait{on: p, in: in}
	if in != nil {
		w.at = in.PushBack(t)
	}
	r := t.more()
	r.waits = append(r.waits, w)
}

// earlier returns the task that one comes after, nil if that is forgotten. A
// younger one is another, which was given its ID since.
func (m *Machine) earlier(t *task, id queue.ID) *task {
	if first := m.tasks.get(id); first != nil && first.place.Ticket() < t.place.Ticket() {
		return first
	}
	return nil
}

// predecessor returns what is known of a task that others come after.
func (m *Machine) predecessor(t *task) *predecessor {
	p := m.predecessors[t.id]
	if p == nil {
		p = &predecessor{id: t.id, unfinished: !t.state.Finished(), success: new(waiters)}
		m.predecessors[t.id] = p
	}
	return p
}

// settled lets the tasks go on that come after one that is finished, as far as its
// state lets them.
func (m *Machine) settled(t *task) {
	p := m.predecessors[t.id]
	if p == nil {
		return
	}
	p.unfinished = false
	m.startPass(&p.end, visitAdjust)
	if t.state == queue.Succeeded {
		w := p.success
		p.success = new(waiters)
		m.startPass(w, visitRelease)
	}
}

// unsettled holds the tasks again that come after one that is retried, whatever
// becomes of it.
func (m *Machine) unsettled(t *task) {
	if p := m.predecessors[t.id]; p != nil {
		p.unfinished = true
		m.startPass(&p.end, visitAdjust)
	}
}

// abandon has no task come after one that is forgotten. Those that wait for its success
// are cancelled.
func (m *Machine) abandon(id queue.ID, seq uint64, w why) {
	m.orphan(id, seq, true, w.by)
	shrink.Delete(&m.predecessors, &m.peaks.predecessors, id)
}

// forgetWaits ends the wait of a task for others.
func (m *Machine) forgetWaits(t *task) {
	for _, w := range t.waits {
		if w.in != nil {
			m.removeWaiter(w.in, w.at)
		}
		if w.on.dependents--; w.on.dependents == 0 && m.predecessors[w.on.id] == w.on {
			m.unpin(w.on)
			shrink.Delete(&m.predecessors, &m.peaks.predecessors, w.on.id)
		}
	}
	if b := t.waitsBatch; b != nil {
		m.removeWaiter(&b.waiting, t.atBatch)
		m.dropBatch(b)
	}
}

// pin keeps a finished task, whose time to be forgotten has come, as long as unfinished
// tasks come after it, and reports whether it does. A task that others wait for in vain
// is not kept: its end is that of their wait.
func (m *Machine) pin(t *task) bool {
	p := m.predecessors[t.id]
	if p == nil || p.success.Len() > 0 {
		return false
	}
	m.tasks.unlist(m.queues.of(t).ends(t.state), t)
	p.pinned = true
	return true
}

// unpin lets retention forget a task.
func (m *Machine) unpin(p *predecessor) {
	if !p.pinned {
		return
	}
	p.pinned = false
	t := m.tasks.get(p.id)
	m.tasks.insert(m.queues.of(t).ends(t.state), 0, t)
}

// unlistEnded takes a finished task out of the list of those that retention forgets.
func (m *Machine) unlistEnded(t *task) {
	if p := m.predecessors[t.id]; p != nil && p.pinned {
		p.pinned = false
		return
	}
	m.tasks.unlist(m.queues.of(t).ends(t.state), t)
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
		m.startPass(&b.waiting, visitAdjust)
	}
}

// leaveBatch counts one task of a batch less that is unfinished.
func (m *Machine) leaveBatch(b *batch) {
	if b.open--; b.open == 0 {
		m.startPass(&b.waiting, visitAdjust)
	}
	m.dropBatch(b)
}

// dropBatch forgets a batch that nothing refers to.
func (m *Machine) dropBatch(b *batch) {
	if b.open == 0 && b.waiting.Len() == 0 {
		shrink.Delete(&m.batches, &m.peaks.batches, b.id)
	}
}

// unhold has a task go on that was held by what it waits for itself, if nothing
// of that is left.
func (m *Machine) unhold(t *task) {
	if t.state == queue.Held && t.free() {
		m.revise(t, queue.Waiting, why{on: queue.OnUnhold})
	}
}
