package machine

import (
	"cmp"
	"slices"
)

// reorder has tasks that are Waiting take their places in the order by their
// ages. They come by their IDs, which is nearly that: what is out of it by less
// than a window comes in it. The rest is put in its place by the order itself, at
// a price; only those have that whose IDs tell nothing of their age.
type reorder struct{ window []queuedTask }

// arrival is one, with what its place depends on.
type queuedTask struct {
	t         *task
	key, kind string
	seq       uint64
	suspect   bool
}

const window = 1 << 16

func (o *reorder) add(s *stateIndex, a queuedTask) {
	if o.window = append(o.window, a); len(o.window) == 2*window {
		o.flush(s, window)
	}
}

// flush has the first n go.
func (o *reorder) flush(s *stateIndex, n int) {
	slices.SortFunc(o.window, func(a, b queuedTask) int { return cmp.Compare(a.seq, b.seq) })
	for _, a := range o.window[:n] {
		s.wait(a)
	}
	o.window = append(o.window[:0], o.window[n:]...)
}
