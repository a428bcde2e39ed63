package machine

import (
	"container/list"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// holds holds and releases tasks that wait for other tasks: when they are submitted, in
// the visits of scans, and when a task in quarantine can be read again. The caller of
// each method holds the lock of the machine.
type holds struct {
	clock       *clock
	deps        *dependencies
	scans       *scans
	queues      *queueSet
	rows        *taskRows
	states      *stateIndex
	transitions *transitions
}

// join registers an unfinished task: its deadline, its group, its batch, and its waits.
func (h *holds) join(t *task, row *record.Row) {
	h.states.arm(t, row)
	h.joinOthers(t, row)
	h.deps.await(t, &row.Spec)
}

// joinOthers adds a task to its group and its batch. A Waiting task that is no longer the
// first of the group is held.
func (h *holds) joinOthers(t *task, row *record.Row) {
	if row.Group != "" {
		if first := h.queues.of(t).groups.join(t, row.Group, row.Seq); first != nil {
			h.transitions.revise(first, queue.Held, cause{on: queue.OnHold})
		}
	}
	if !row.Batch.IsZero() {
		h.deps.joinBatch(t, row.Batch)
	}
}

// hold holds a task that a claim has picked although it must wait again: the scan that
// holds it has not visited it yet.
func (h *holds) hold(t *task) {
	h.scans.spend()
	h.transitions.revise(t, queue.Held, cause{on: queue.OnHold})
}

// adjust holds or releases a task, as its waits are now.
func (h *holds) adjust(t *task) {
	h.transitions.unhold(t)
	if t.state == queue.Waiting && !t.free() {
		h.transitions.revise(t, queue.Held, cause{on: queue.OnHold})
	}
}

// misplaced reports whether adjust would change a task.
func (h *holds) misplaced(t *task) bool {
	return t.state == queue.Held && t.free() || t.state == queue.Waiting && !t.free()
}

// repair reads the row of a task in quarantine again, and puts the task into the state
// of the row. If the row cannot be read, the task stays in quarantine until the next
// attempt.
func (h *holds) repair(t *task) {
	row, err := h.rows.row(t)
	if err != nil {
		t.damage.err = err
		h.states.due.set(t, h.clock.after(rereadAfter(err)))
		return
	}
	h.states.leave(t)
	h.states.arm(t, &row)
	h.states.enter(t, &row, row.State)
	for _, w := range t.waiting() {
		if w.in != nil && w.in.cascade != nil {
			h.cancelOrphan(t, &row, w.in.cascade)
			return
		}
	}
	h.adjust(t)
}

// visit makes the visit of a scan to the task of e. It may remove e from w.
func (h *holds) visit(w *waiters, e *list.Element) {
	t := e.Value.(*task)
	switch w.visit {
	case visitAdjust:
		h.adjust(t)
	case visitRelease:
		h.release(t, w, e)
	case visitCancel:
		h.cancel(t, w.cascade)
	}
}

// release ends the wait of a task for the success of another task.
func (h *holds) release(t *task, w *waiters, e *list.Element) {
	h.deps.removeWaiter(w, e)
	for i := range t.waits {
		if t.waits[i].in == w {
			t.waits[i].in, t.waits[i].at = nil, nil
		}
	}
	h.transitions.unhold(t)
}

// cancel cancels a task for a cascade. If its row cannot be read, the task is put in
// quarantine and stays in its list: repair cancels it.
func (h *holds) cancel(t *task, c *cascade) {
	row, err := h.rows.row(t)
	if err != nil {
		h.states.quarantine(t, err)
		return
	}
	h.cancelOrphan(t, &row, c)
}

// cancelOrphan cancels a task for a cascade, and begins a cascade of its successors.
func (h *holds) cancelOrphan(t *task, row *record.Row, c *cascade) {
	id, seq := t.id, t.entry.Ticket()
	h.transitions.change(t, row, queue.Cancelled, c.why())
	h.deps.orphan(id, seq, false, c.By)
}
