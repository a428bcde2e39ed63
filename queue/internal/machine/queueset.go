package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// queueSet is all queues, by name and by the number that their tasks store. A queue is
// added when a task or a setting first names it. Programs may name queues after their
// customers, for example, so retention removes queues that have been unused for long. A
// listener does not add a queue. The caller of each method holds the lock of the machine.
type queueSet struct {
	byName     map[string]*queueState          // queues that have, or recently had, tasks or settings
	numbered   []*queueState                   // the same, by their numbers, which begin with 1
	unnumbered []uint32                        // numbers of queues that have been removed
	sorted     []*queueState                   // cache of all; nil after a removal
	listeners  map[string][]chan struct{}      // by the name of a queue, which need not exist
	configure  func(*queueState)               // applies the settings in force to a new queue
	forgetting heap[*queueState]               // queues with finished tasks, by when retention forgets the next one
	keyLimits  keyLimits                       // of single keys in each queue; settingSet changes them
	peaks      struct{ byName, listeners int } // of the maps, for shrink.Delete
}

// remove removes a queue that has no task.
func (s *queueSet) remove(q *queueState) {
	s.sorted = nil
	s.forgetting.remove(q)
	shrink.Delete(&s.byName, &s.peaks.byName, q.name)
	s.numbered[q.no] = nil
	s.unnumbered = append(s.unnumbered, q.no)
}

// get returns the queue with a name, and adds one if there is none.
func (s *queueSet) get(name string) *queueState {
	q := s.byName[name]
	if q == nil {
		q = newQueueState(name, s.number(), &s.keyLimits, s.listeners[name])
		s.byName[name], s.numbered[q.no] = q, q
		s.configure(q)
	}
	return q
}

// review makes retention look at a queue again, because it may have to forget a task of the queue
// earlier than it knows.
func (s *queueSet) review(q *queueState) { s.forgetting.set(q, 0) }

// of returns the queue of a task.
func (s *queueSet) of(t *task) *queueState { return s.numbered[t.queueNo] }

// all returns all queues in the order of their names. The caller must not change the
// slice.
func (s *queueSet) all() []*queueState {
	if len(s.sorted) != len(s.byName) {
		s.sorted = slices.SortedFunc(maps.Values(s.byName), func(a, b *queueState) int { return cmp.Compare(a.name, b.name) })
	}
	return s.sorted
}

// number returns a free number for a new queue. It is an index of numbered.
func (s *queueSet) number() uint32 {
	if n := len(s.unnumbered); n > 0 {
		no := s.unnumbered[n-1]
		s.unnumbered = s.unnumbered[:n-1]
		return no
	}
	s.numbered = append(s.numbered, nil)
	return uint32(len(s.numbered) - 1)
}

// setListeners sets the channels that are signalled for a queue. It does not add the
// queue: without tasks and settings, nothing of a name is left after its last listener.
func (s *queueSet) setListeners(name string, listeners []chan struct{}) {
	if len(listeners) == 0 {
		listeners = nil
		shrink.Delete(&s.listeners, &s.peaks.listeners, name)
	} else {
		s.listeners[name] = listeners
	}
	if q := s.byName[name]; q != nil {
		q.listeners = listeners
	}
}
