package machine

import (
	"container/list"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// dependencies is what unfinished tasks wait for: the success or the end of other tasks,
// and the end of batches. It keeps an entry for each task and batch that is waited for,
// and changes no task: it starts passes over the tasks whose waits may be over, or have
// begun again. Retention does not forget a finished task while another one comes after
// it: such a task is pinned. The caller of each method holds the lock of the machine.
type dependencies struct {
	cascades *cascades
	passes   *passes
	queues   *queueSet
	tasks    *tasks

	batches      map[queue.ID]*batch
	predecessors map[queue.ID]*predecessor           // that unfinished tasks come after
	peaks        struct{ batches, predecessors int } // of the maps, as shrink.Delete has them
}

// linkedTasks is tasks that have something in common, in the order in which that came
// about. Each task knows its element, so that it can be removed.
type linkedTasks = list.List

// predecessor is a task that unfinished tasks come after.
type predecessor struct {
	id         queue.ID
	unfinished bool
	pinned     bool     // it is finished, and not in the list by which retention forgets
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

// await enters the waits of a task for the tasks and the batch that it comes after.
func (d *dependencies) await(t *task, s *queue.Spec) {
	for _, id := range s.After {
		d.awaitSuccess(t, id)
	}
	for _, id := range s.AfterAny {
		first := d.earlier(t, id)
		if first == nil || slices.ContainsFunc(t.waiting(), func(w wait) bool { return w.on.id == id && w.in == &w.on.end }) {
			continue
		}
		p := d.predecessor(first)
		d.addWait(t, p, &p.end)
	}
	if !s.AfterBatch.IsZero() {
		b := d.batchOf(s.AfterBatch)
		t.more().waitsBatch = b
		t.atBatch = b.waiting.PushBack(t)
	}
}

// awaitSuccess enters the wait of a task for the success of the task of an ID. There is
// none if that task is forgotten: it had succeeded then, or has cancelled the tasks that
// came after it.
func (d *dependencies) awaitSuccess(t *task, id queue.ID) {
	if w := d.cascades.of(t, id); w != nil {
		d.addWait(t, &predecessor{id: id, success: w}, w)
		return
	}
	first := d.earlier(t, id)
	if first == nil || slices.ContainsFunc(t.waiting(), func(w wait) bool { return w.on.id == id && w.in != &w.on.end }) {
		return
	}
	p := d.predecessor(first)
	if first.state == queue.Succeeded {
		d.addWait(t, p, nil)
		return
	}
	d.unpin(p) // retention must be able to forget it: t would wait for as long
	d.addWait(t, p, p.success)
}

// addWait enters a wait of t for p, in a list unless that is nil.
func (d *dependencies) addWait(t *task, p *predecessor, in *waiters) {
	p.dependents++
	w := wait{on: p, in: in}
	if in != nil {
		w.at = in.PushBack(t)
	}
	r := t.more()
	r.waits = append(r.waits, w)
}

// earlier returns the task of an ID that t comes after, nil if that task is forgotten. A
// younger task is another one, which was given the ID since.
func (d *dependencies) earlier(t *task, id queue.ID) *task {
	if first := d.tasks.get(id); first != nil && first.place.Ticket() < t.place.Ticket() {
		return first
	}
	return nil
}

// predecessor returns the entry of a task that others come after, made if there is none.
func (d *dependencies) predecessor(t *task) *predecessor {
	p := d.predecessors[t.id]
	if p == nil {
		p = &predecessor{id: t.id, unfinished: !t.state.Finished(), success: new(waiters)}
		d.predecessors[t.id] = p
	}
	return p
}

// settled starts passes over the tasks that come after one that is finished.
func (d *dependencies) settled(t *task) {
	p := d.predecessors[t.id]
	if p == nil {
		return
	}
	p.unfinished = false
	d.passes.start(&p.end, visitAdjust)
	if t.state == queue.Succeeded {
		w := p.success
		p.success = new(waiters)
		d.passes.start(w, visitRelease)
	}
}

// unsettled starts a pass over the tasks that wait for the end of a task, which is
// retried: they are held again.
func (d *dependencies) unsettled(t *task) {
	if p := d.predecessors[t.id]; p != nil {
		p.unfinished = true
		d.passes.start(&p.end, visitAdjust)
	}
}

// orphan begins to cancel the tasks that wait for the success of a task.
func (d *dependencies) orphan(id queue.ID, seq uint64, forgotten bool, by string) {
	p := d.predecessors[id]
	if p == nil || p.success.Len() == 0 {
		return
	}
	w := p.success
	p.success = new(waiters) // of tasks that come to wait for it later
	d.cascades.begin(w, cascade{ID: id, Seq: seq, Forgotten: forgotten, By: by})
}

// abandon removes the entry of a task that is forgotten. Tasks that wait for its success
// are cancelled.
func (d *dependencies) abandon(id queue.ID, seq uint64, w cause) {
	d.orphan(id, seq, true, w.by)
	shrink.Delete(&d.predecessors, &d.peaks.predecessors, id)
}

// forgetWaits ends all waits of a task.
func (d *dependencies) forgetWaits(t *task) {
	for _, w := range t.waits {
		if w.in != nil {
			d.removeWaiter(w.in, w.at)
		}
		if w.on.dependents--; w.on.dependents == 0 && d.predecessors[w.on.id] == w.on {
			d.unpin(w.on)
			shrink.Delete(&d.predecessors, &d.peaks.predecessors, w.on.id)
		}
	}
	if b := t.waitsBatch; b != nil {
		d.removeWaiter(&b.waiting, t.atBatch)
		d.dropBatch(b)
	}
}

// removeWaiter removes a task from a list, and records the end of a cascade that has no
// task left.
func (d *dependencies) removeWaiter(w *waiters, e *list.Element) {
	if w.next == e {
		w.next = e.Next()
	}
	w.Remove(e)
	if w.cascade != nil && w.Len() == 0 {
		d.cascades.remove(w.cascade)
	}
}

// pin keeps a finished task, whose time to be forgotten has come, as long as unfinished
// tasks come after it, and reports whether it does. It does not keep a task whose success
// others wait for: to forget it ends their wait.
func (d *dependencies) pin(t *task) bool {
	p := d.predecessors[t.id]
	if p == nil || p.success.Len() > 0 {
		return false
	}
	d.tasks.unlist(d.queues.of(t).ends(t.state), t)
	p.pinned = true
	return true
}

// unpin lets retention forget a task.
func (d *dependencies) unpin(p *predecessor) {
	if !p.pinned {
		return
	}
	p.pinned = false
	t := d.tasks.get(p.id)
	d.tasks.insert(d.queues.of(t).ends(t.state), 0, t)
}

// unlistEnded removes a finished task from the list by which retention forgets.
func (d *dependencies) unlistEnded(t *task) {
	if p := d.predecessors[t.id]; p != nil && p.pinned {
		p.pinned = false
		return
	}
	d.tasks.unlist(d.queues.of(t).ends(t.state), t)
}

// batchOf returns a batch, made if there is none.
func (d *dependencies) batchOf(id queue.ID) *batch {
	b := d.batches[id]
	if b == nil {
		b = &batch{id: id}
		d.batches[id] = b
	}
	return b
}

// joinBatch counts an unfinished task of a batch. The first one holds the tasks again
// that wait for the batch.
func (d *dependencies) joinBatch(t *task, id queue.ID) {
	b := d.batchOf(id)
	t.more().batch = b
	if b.open++; b.open == 1 {
		d.passes.start(&b.waiting, visitAdjust)
	}
}

// leaveBatch counts one unfinished task of a batch less. After the last one, the tasks
// that wait for the batch go on.
func (d *dependencies) leaveBatch(b *batch) {
	if b.open--; b.open == 0 {
		d.passes.start(&b.waiting, visitAdjust)
	}
	d.dropBatch(b)
}

// dropBatch removes a batch that no task refers to.
func (d *dependencies) dropBatch(b *batch) {
	if b.open == 0 && b.waiting.Len() == 0 {
		shrink.Delete(&d.batches, &d.peaks.batches, b.id)
	}
}
