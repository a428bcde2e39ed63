package machine

import (
	"time"
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
