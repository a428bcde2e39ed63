package machine

// unclaim takes starts back that nobody was told of, because they could not be
// noted. It leaves nothing behind: a disk that fails for long would fill the
// histories of tasks with starts that never were. Who may claim them is told if others
// of the claim have been noted. Else the next claim would fail as this one has, and
// so without end.
func (m *Machine) unclaim(starts []Noted, others bool) {
	m.steps.lockCorrected()
	defer m.steps.mu.Unlock()
	if !m.steps.closed {
		m.claims.takeBack(starts, others)
	}
	m.steps.seal() // nobody waits for it: if it is lost, so is the claim
}
