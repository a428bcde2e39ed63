package simulation_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ear is somebody who listens to a queue.
type ear struct {
	host  *host
	queue string
	key   string // tells it from all others of the process
	ready chan struct{}
}

// listen has the world signal to somebody when there may be tasks of a queue. Of
// one process who comes first may be by chance: what follows goes by the key.
func (w *world) listen(h *host, name string) *ear {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.listened[name]++
	e := &ear{h, name, fmt.Sprintf("listen %s %03d", name, h.listened[name]), make(chan struct{}, 1)}
	w.ears = append(w.ears, e)
	slices.SortStableFunc(w.ears, func(a, b *ear) int { return cmp.Compare(a.key, b.key) })
	return e
}

// unlisten ends that.
func (w *world) unlisten(e *ear) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ears = slices.DeleteFunc(w.ears, func(other *ear) bool { return other == e })
}

// passSignals tells all nodes what the store signals, and reports whether it has
// signalled anything.
func (w *world) passSignals() (moved bool) {
	if w.store == nil {
		return false
	}
	var names []string
	for _, name := range queueNames {
		select {
		case <-w.signals[name]:
			names = append(names, name)
		default:
		}
	}
	if len(names) > 0 {
		w.signal(names...)
	}
	return len(names) > 0
}

// signal tells all who listen to queues. Those of one process want the same slots:
// they are told one after the other, and at no time at which one of them looks of
// itself, or both would from then on.
func (w *world) signal(names ...string) {
	w.mu.Lock()
	ears := slices.Clone(w.ears)
	w.mu.Unlock()
	for told := make(map[*host]bool); len(ears) > 0; clear(told) {
		tick(upTo(w.rng, 10*time.Microsecond))
		ears = slices.DeleteFunc(ears, func(e *ear) bool {
			if told[e.host] {
				return false
			}
			if slices.Contains(names, e.queue) {
				told[e.host] = true
				signal(e.ready)
			}
			return true
		})
		tick(time.Nanosecond) // what comes next comes later
	}
}

// signal leaves a signal, unless there is one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
