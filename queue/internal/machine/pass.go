package machine

import (
	"container/list"
	"time"

	"github.com/stintgo/stint/queue"
)

// The end of one task, or of a batch, may concern a million tasks that wait for it.
// A step never visits all of them: it makes the first visitsPerStep visits itself,
// so that a few waiters go on at once, and leaves the rest to a goroutine, drain,
// which makes as many in each of its own steps. Callers get the lock between two steps.
//
// Nothing has to be written down about a release that is not complete. Open derives
// it: a task that is Held although nothing holds it is let go. A cancellation cannot
// be derived, because its cause is forgotten; see cascade.go.

const (
	visitsPerStep = 100 // waiters that one step visits, and tasks that one step of a claim expires
	visitsPerPass = 25  // waiters of one list that drain visits before it turns to the next list

	// drainPause is how long drain sleeps between two steps. Without it a caller that
	// has become runnable waits for tens of milliseconds where there are few
	// processors: drain and the goroutines it wakes keep one busy, and what works in
	// the background (collector, compaction) may use all of its time slice on the
	// other. A processor that becomes idle takes the caller over.
	drainPause = 500 * time.Microsecond
)

// waiters are tasks that wait for the same thing, in the order in which they began
// to. A pass goes through them in parts.
type waiters struct {
	list.List // of *task

	// The pass, if queued is true. Its end is a nil next.
	queued bool
	next   *list.Element
	visit  func(*Machine, *waiters, *list.Element) // may remove the element

	cascade *cascade // if these tasks are to be cancelled
}

// remove takes a task out of its list, and records the end of a cascade that has no
// task left.
func (m *Machine) removeWaiter(w *waiters, e *list.Element) {
	if w.next == e {
		w.next = e.Next()
	}
	w.Remove(e)
	if w.cascade != nil && w.Len() == 0 {
		m.unrecord(w.cascade)
	}
}

// startPass has every task of a list visited, from the first one on: the pass that
// was under way starts again.
func (m *Machine) startPass(w *waiters, visit func(*Machine, *waiters, *list.Element)) {
	w.next, w.visit = w.Front(), visit
	if w.next == nil || w.queued {
		return
	}
	w.queued = true
	m.fresh = append(m.fresh, w)
}

// visitSome makes at most n visits of a pass, and returns how many it did not use.
func (m *Machine) visitSome(w *waiters, n int) int {
	for ; n > 0 && w.next != nil; n-- {
		e := w.next
		w.next = e.Next()
		w.visit(m, w, e)
	}
	w.queued = w.next != nil
	return n
}

// advance makes visits of the passes that this step has started, as many as a step
// may still make.
func (m *Machine) advance() {
	for len(m.fresh) > 0 && m.visits > 0 && m.journal.failed() == nil {
		w := m.fresh[0]
		m.visits = m.visitSome(w, m.visits)
		if !w.queued {
			m.fresh = m.fresh[1:]
		}
	}
}

// seal completes a step: it makes the visits that the step may make, leaves the rest
// to drain, and records what an opened store could not derive. It returns the
// journal's mark.
func (m *Machine) seal() uint64 {
	m.advance()
	m.passes = append(m.passes, m.fresh...)
	m.fresh = nil
	m.recordCascades()
	if len(m.passes) > 0 && !m.draining && !m.closed && m.journal.failed() == nil {
		m.draining = true
		m.reading.Add(1)
		go m.drain()
	}
	return m.journal.seal()
}

// drain completes all passes, a bounded part of them in each step. It ends when there
// are none left, when the machine is closed, or when rows cannot be written.
func (m *Machine) drain() {
	defer m.reading.Done()
	for {
		m.lockCorrected()
		if len(m.passes) == 0 || m.closed || m.journal.failed() != nil {
			m.draining = false
			m.mu.Unlock()
			return
		}
		m.visits = visitsPerStep
		m.drainStep()
		_ = m.endAt(nil, nil) // an error stays in the journal, and ends the loop
		time.Sleep(drainPause)
	}
}

// drainStep makes visits of all passes in turn, so that a short one does not wait for
// a long one.
func (m *Machine) drainStep() {
	for m.visits > 0 && len(m.passes) > 0 && m.journal.failed() == nil {
		w := m.passes[0]
		m.passes[0] = nil
		m.passes = m.passes[1:]
		n := min(visitsPerPass, m.visits)
		m.visits -= n - m.visitSome(w, n)
		if w.queued {
			m.passes = append(m.passes, w)
		}
	}
}

// visitAdjust has a task be held, or not, as is right by now: what it waits for
// may hold it again.
func visitAdjust(m *Machine, _ *waiters, e *list.Element) {
	t := e.Value.(*task)
	m.adjust(t)
}

// visitRelease ends the wait of a task for the success of another one.
func visitRelease(m *Machine, w *waiters, e *list.Element) {
	t := e.Value.(*task)
	m.removeWaiter(w, e)
	for i := range t.waits {
		if t.waits[i].in == w {
			t.waits[i].in, t.waits[i].at = nil, nil
		}
	}
	m.unhold(t)
}

// hold holds a task whose turn it is though it has to wait again, because the pass
// that holds it has not come to it yet.
func (m *Machine) hold(t *task) {
	m.visits--
	m.revise(t, queue.Held, why{on: queue.OnHold})
}
