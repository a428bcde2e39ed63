package machine

import (
	"cmp"
	"slices"
)

// reorder puts Waiting tasks into the order of their queues by their ages. They come in
// the order of their IDs, which is nearly that of their ages: tasks that are out of it by
// less than a window are sorted within the window. The order itself puts any other task
// into its place, which takes longer; that concerns only tasks whose IDs do not grow with
// their ages.
type reorder struct{ window []queuedTask }

// queuedTask is a task that is to be queued, with what its place depends on.
type queuedTask struct {
	t         *task
	key, kind string
	seq       uint64
	suspect   bool
}

const window = 1 << 16

// add takes a task, and queues some when the window is full.
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
