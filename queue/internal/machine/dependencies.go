package machine

import (
	"container/list"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// dependencies records what unfinished tasks wait for: the success or the end of other
// tasks (After, AfterAny), and the end of batches (AfterBatch). It has an entry for
// each predecessor and batch. It changes the state of no task: when a predecessor ends
// or is retried, it starts a scan of the tasks that wait for it. A finished task that
// unfinished tasks come after is pinned: retention does not forget it. The caller of
// each method holds the lock of the machine.
type dependencies struct {
	cascades *cascades
	scans    *scans
	queues   *queueSet
	tasks    *tasks

	batches      map[queue.ID]*batch
	predecessors map[queue.ID]*predecessor           // that unfinished tasks come after
	peaks        struct{ batches, predecessors int } // of the maps, for shrink.Delete
}

// linkedTasks is a list of *task, in the order in which they were added. Each task stores
// its element, so that it can be removed.
type linkedTasks = list.List

// predecessor is a task that unfinished tasks come after.
type predecessor struct {
	id         queue.ID
	unfinished bool
	pinned     bool     // finished, and removed from the list from which retention forgets
	success    *waiters // tasks that have it in After, unless it has succeeded
	end        waiters  // tasks that have it in AfterAny, also when it has ended: a retry holds them again
	dependents int      // waits that refer to this predecessor
}

// wait is one task that a task comes after.
type wait struct {
	on *predecessor
	in *waiters // the list that has the task; nil: on has succeeded
	at *list.Element
}

// holds reports whether the wait keeps its task from starting.
func (w *wait) holds() bool {
	if w.in == &w.on.end {
		return w.on.unfinished
	}
	return w.in != nil
}

// batch is a batch that has unfinished tasks, or tasks that wait for its end.
type batch struct {
	id      queue.ID
	open    int     // unfinished tasks of the batch
	waiting waiters // tasks that wait until open is 0
}

// await registers the waits of a task for the tasks and the batch that it comes after. If
// the task names a predecessor twice, it is already the last task of the predecessor's list,
// because all its waits are registered together.
func (d *dependencies) await(t *task, s *queue.Spec) {
	for _, id := range s.After {
		d.awaitSuccess(t, id)
	}
	for _, id := range s.AfterAny {
		first := d.earlier(t, id)
		if first == nil {
			continue
		}
		if p := d.predecessor(first); !p.end.endsWith(t) {
			d.addWait(t, p, &p.end)
		}
	}
	if !s.AfterBatch.IsZero() {
		b := d.batchOf(s.AfterBatch)
		t.more().waitsBatch = b
		t.atBatch = b.waiting.PushBack(t)
	}
}

// awaitSuccess registers the wait of t for the success of the task with an ID. If that
// task is forgotten there is nothing to wait for: it had succeeded, or a cascade has
// cancelled its successors.
func (d *dependencies) awaitSuccess(t *task, id queue.ID) {
	if w := d.cascades.of(t, id); w != nil {
		d.addWait(t, &predecessor{id: id, success: w}, w)
		return
	}
	first := d.earlier(t, id)
	if first == nil {
		return
	}
	p := d.predecessor(first)
	if first.state == queue.Succeeded {
		d.addWait(t, p, nil)
		return
	}
	d.unpin(p) // a pinned task that has not succeeded would hold t for ever
	if !p.success.endsWith(t) {
		d.addWait(t, p, p.success)
	}
}

// addWait registers a wait of t for p, and adds t to a list unless that is nil.
func (d *dependencies) addWait(t *task, p *predecessor, in *waiters) {
	p.dependents++
	w := wait{on: p, in: in}
	if in != nil {
		w.at = in.PushBack(t)
	}
	r := t.more()
	r.waits = append(r.waits, w)
}

// earlier returns the task with an ID that t comes after, nil if that task is
// forgotten. A task younger than t is not the predecessor: it has reused the ID.
func (d *dependencies) earlier(t *task, id queue.ID) *task {
	if first := d.tasks.get(id); first != nil && first.entry.Ticket() < t.entry.Ticket() {
		return first
	}
	return nil
}

// predecessor returns the entry of a task that others come after, and adds one if there
// is none.
func (d *dependencies) predecessor(t *task) *predecessor {
	p := d.predecessors[t.id]
	if p == nil {
		p = &predecessor{id: t.id, unfinished: !t.state.Finished(), success: new(waiters)}
		d.predecessors[t.id] = p
	}
	return p
}

// finished starts scans of the tasks that come after t, which has finished.
func (d *dependencies) finished(t *task) {
	p := d.predecessors[t.id]
	if p == nil {
		return
	}
	p.unfinished = false
	d.scans.start(&p.end, visitAdjust)
	if t.state == queue.Succeeded {
		w := p.success
		p.success = new(waiters)
		d.scans.start(w, visitRelease)
	}
}

// retried starts a scan of the tasks that wait for the end of t: its retry holds them
// again.
func (d *dependencies) retried(t *task) {
	if p := d.predecessors[t.id]; p != nil {
		p.unfinished = true
		d.scans.start(&p.end, visitAdjust)
	}
}

// orphan begins a cascade of the tasks that wait for the success of a task.
func (d *dependencies) orphan(id queue.ID, seq uint64, forgotten bool, by string) {
	p := d.predecessors[id]
	if p == nil || p.success.Len() == 0 {
		return
	}
	w := p.success
	p.success = new(waiters) // for tasks that wait for a retry of the same task
	d.cascades.begin(w, cascade{ID: id, Seq: seq, Forgotten: forgotten, By: by})
}

// abandon removes the entry of a forgotten task, and begins a cascade of the tasks that
// wait for its success.
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

// removeWaiter removes a task from a list. If the list is empty then and has a cascade,
// removeWaiter removes the row of the cascade.
func (d *dependencies) removeWaiter(w *waiters, e *list.Element) {
	if w.next == e {
		w.next = e.Next()
	}
	w.Remove(e)
	if w.cascade != nil && w.Len() == 0 {
		d.cascades.remove(w.cascade)
	}
}

// pin removes a finished task that is due to be forgotten from its list if unfinished
// tasks come after it, and reports whether it has. It does not pin a task whose success
// others wait for: forgetting that task ends their wait.
func (d *dependencies) pin(t *task) bool {
	p := d.predecessors[t.id]
	if p == nil || p.success.Len() > 0 {
		return false
	}
	d.tasks.unlist(d.queues.of(t).finishedList(t.state), t)
	p.pinned = true
	return true
}

// unpin puts a pinned task back into the list from which retention forgets, at the front.
func (d *dependencies) unpin(p *predecessor) {
	if !p.pinned {
		return
	}
	p.pinned = false
	t := d.tasks.get(p.id)
	q := d.queues.of(t)
	d.tasks.insert(q.finishedList(t.state), 0, t)
	d.queues.review(q)
}

// unlistEnded removes a finished task from the list from which retention forgets.
func (d *dependencies) unlistEnded(t *task) {
	if p := d.predecessors[t.id]; p != nil && p.pinned {
		p.pinned = false
		return
	}
	d.tasks.unlist(d.queues.of(t).finishedList(t.state), t)
}

// batchOf returns the batch with an ID, and adds one if there is none.
func (d *dependencies) batchOf(id queue.ID) *batch {
	b := d.batches[id]
	if b == nil {
		b = &batch{id: id}
		d.batches[id] = b
	}
	return b
}

// joinBatch adds an unfinished task to a batch. If it is the only one, the tasks that
// wait for the batch are held again.
func (d *dependencies) joinBatch(t *task, id queue.ID) {
	b := d.batchOf(id)
	t.more().batch = b
	if b.open++; b.open == 1 {
		d.scans.start(&b.waiting, visitAdjust)
	}
}

// leaveBatch removes an unfinished task from a batch. If it was the last one, the tasks
// that wait for the batch are released.
func (d *dependencies) leaveBatch(b *batch) {
	if b.open--; b.open == 0 {
		d.scans.start(&b.waiting, visitAdjust)
	}
	d.dropBatch(b)
}

// dropBatch removes a batch that has no unfinished task and no waiter.
func (d *dependencies) dropBatch(b *batch) {
	if b.open == 0 && b.waiting.Len() == 0 {
		shrink.Delete(&d.batches, &d.peaks.batches, b.id)
	}
}
