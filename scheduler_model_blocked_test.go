package stint_test

import "slices"

// admitSubmitter queues the job of the next blocked submitter, if there is room or the
// job can start at once. The blocked submitters are a queue like this one, for which what
// waits here is what runs.
func (n *schedulerModel) admitSubmitter() bool {
	if n.submitters == nil {
		return false
	}
	n.submitters.running = len(n.waiting)
	p, _ := n.submitters.chosen()
	if p == nil {
		n.submitters.running = 0
		if p, _ = n.submitters.chosen(); p == nil || !n.admits(p.brings) {
			return false
		}
	}
	n.submitters.start(p)
	n.submitters.exit(p)
	n.push(p.brings)
	return true
}

// blocked is how many submitters wait for room.
func (n *schedulerModel) blocked() int {
	if n.submitters == nil {
		return 0
	}
	return len(n.submitters.waiting)
}

// refuseSubmitters removes the submitters whose jobs get an answer. withdraw must follow.
func (n *schedulerModel) refuseSubmitters(why func(*piece) error) {
	if n.submitters == nil {
		return
	}
	for _, p := range slices.Backward(slices.Clone(n.submitters.waiting)) {
		if err := why(p.brings); err != nil {
			n.submitters.take(p, p.tag)
			p.brings.state, p.brings.err = over, err
		}
	}
}
