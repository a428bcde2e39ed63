package machine

import (
	"cmp"
	"slices"
)

// reorder queues loaded Waiting tasks in the order of their ages. Rows are read in the
// order of IDs, which is nearly the order of ages: a sliding window sorts tasks that
// are out of order by less than its length. Tasks that are further out of order,
// because their IDs do not grow with their ages, are sorted by the backlog, which takes
// longer.
type reorder struct{ window []queuedTask }

// queuedTask is a task to be queued, with the properties on which its position depends.
type queuedTask struct {
	t         *task
	key, kind string
	seq       uint64
	suspect   bool
}

const window = 1 << 16

// add adds a task to the window, and queues the oldest half of a full window.
func (o *reorder) add(s *stateIndex, a queuedTask) {
	if o.window = append(o.window, a); len(o.window) == 2*window {
		o.flush(s, window)
	}
}

// flush queues the first n tasks of the window.
func (o *reorder) flush(s *stateIndex, n int) {
	slices.SortFunc(o.window, func(a, b queuedTask) int { return cmp.Compare(a.seq, b.seq) })
	for _, a := range o.window[:n] {
		s.wait(a)
	}
	o.window = append(o.window[:0], o.window[n:]...)
}
