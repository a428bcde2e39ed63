package machine

import (
	"container/list"
	"time"

	"github.com/stintgo/stint/queue"
)

// seal completes a step: it makes the visits that the step may make, leaves the rest
// to drain, and records what an opened store could not derive. It returns the
// journal's mark.
func (m *Machine) seal() uint64 {
	m.passes.advance()
	m.passes.queued = append(m.passes.queued, m.passes.fresh...)
	m.passes.fresh = nil
	m.cascades.recordAll()
	if len(m.passes.queued) > 0 && !m.passes.draining && !m.closed && m.journal.failed() == nil {
		m.passes.draining = true
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
		if len(m.passes.queued) == 0 || m.closed || m.journal.failed() != nil {
			m.passes.draining = false
			m.mu.Unlock()
			return
		}
		m.passes.left = visitsPerStep
		m.passes.drainStep()
		_ = m.endAt(nil, nil) // an error stays in the journal, and ends the loop
		time.Sleep(drainPause)
	}
}

// visitOne makes the visit of a pass to one of its tasks. It may remove e from w.
func (m *Machine) visitOne(w *waiters, e *list.Element) {
	t := e.Value.(*task)
	switch w.visit {
	case visitAdjust:
		m.adjust(t)
	case visitRelease:
		m.release(t, w, e)
	case visitCancel:
		m.cancel(t, w.cascade)
	}
}

// release ends the wait of a task for the success of another one.
func (m *Machine) release(t *task, w *waiters, e *list.Element) {
	m.deps.removeWaiter(w, e)
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
	m.passes.left--
	m.revise(t, queue.Held, why{on: queue.OnHold})
}
