package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// queueSet is all queues, by name and by the number that is in their tasks. A queue is
// made when a task or a setting first names it. Programs name queues after what comes and
// goes, such as their customers, so retention removes a queue that has been of no use for
// long. A name that is only listened to makes no queue. The caller of
// each method holds the lock of the machine.
type queueSet struct {
	byName     map[string]*line                // that have tasks, or settings, or had them lately
	numbered   []*line                         // the same, by their numbers
	unnumbered []uint32                        // numbers of those that have been forgotten
	sorted     []*line                         // by their names, as of the last call of queues
	listeners  map[string][]chan struct{}      // by the name of a queue, also of one that is not there yet
	configure  func(*line)                     // puts the settings in force into a queue that is made
	peaks      struct{ byName, listeners int } // of the maps, as shrink.Delete has them
}

// remove removes a queue that has no task.
func (q *queueSet) remove(l *line) {
	q.sorted = nil
	shrink.Delete(&q.byName, &q.peaks.byName, l.name)
	q.numbered[l.no] = nil
	q.unnumbered = append(q.unnumbered, l.no)
}

// get returns a queue, made if there is none.
func (q *queueSet) get(name string) *line {
	l := q.byName[name]
	if l == nil {
		l = newLine(name, q.number(), q.listeners[name])
		q.byName[name], q.numbered[l.no] = l, l
		q.configure(l)
	}
	return l
}

// of returns the queue of a task.
func (q *queueSet) of(t *task) *line { return q.numbered[t.line] }

// queues are all queues, in an order that is always the same.
func (q *queueSet) all() []*line {
	if len(q.sorted) != len(q.byName) { // who takes one out forgets the order
		q.sorted = slices.SortedFunc(maps.Values(q.byName), func(a, b *line) int { return cmp.Compare(a.name, b.name) })
	}
	return q.sorted
}

// number returns a number for a new queue, which has a place in numbered.
func (q *queueSet) number() uint32 {
	if n := len(q.unnumbered); n > 0 {
		no := q.unnumbered[n-1]
		q.unnumbered = q.unnumbered[:n-1]
		return no
	}
	q.numbered = append(q.numbered, nil)
	return uint32(len(q.numbered) - 1)
}

// setListeners has these told of a queue. The queue need not be there, and is not made: a
// name that is only listened to is forgotten with its last listener.
func (q *queueSet) setListeners(name string, listeners []chan struct{}) {
	if len(listeners) == 0 {
		listeners = nil
		shrink.Delete(&q.listeners, &q.peaks.listeners, name)
	} else {
		q.listeners[name] = listeners
	}
	if l := q.byName[name]; l != nil {
		l.listeners = listeners
	}
}
