package stint_test

import "slices"

// letIn queues the job of the one whose turn it is at the door, if there is room
// or the job can start at once. The door is a queue as this one is, to which
// what waits here is what runs.
func (n *naive) letIn() bool {
	if n.door == nil {
		return false
	}
	n.door.running = len(n.waiting)
	p, _ := n.door.chosen()
	if p == nil {
		n.door.running = 0
		if p, _ = n.door.chosen(); p == nil || !n.admits(p.brings) {
			return false
		}
	}
	n.door.start(p)
	n.door.exit(p)
	n.push(p.brings)
	return true
}

// blocked is how many wait at the door.
func (n *naive) blocked() int {
	if n.door == nil {
		return 0
	}
	return len(n.door.waiting)
}

// leave has those go away from the door whose jobs get an answer. withdraw must
// follow.
func (n *naive) leave(why func(*piece) error) {
	if n.door == nil {
		return
	}
	for _, p := range slices.Backward(slices.Clone(n.door.waiting)) {
		if err := why(p.brings); err != nil {
			n.door.take(p, p.tag)
			p.brings.state, p.brings.err = over, err
		}
	}
}
