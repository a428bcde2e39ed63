package simulation_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ear is a listener of a queue.
type ear struct {
	host  *host
	queue string
	key   string // unlike the keys of all others of the process
	ready chan struct{}
}

// listen registers a listener that the world signals. The order of the listeners of a
// process may be random, so the world orders them by key.
func (w *world) listen(h *host, name string) *ear {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.listened[name]++
	e := &ear{h, name, fmt.Sprintf("listen %s %03d", name, h.listened[name]), make(chan struct{}, 1)}
	w.ears = append(w.ears, e)
	slices.SortStableFunc(w.ears, func(a, b *ear) int { return cmp.Compare(a.key, b.key) })
	return e
}

// unlisten removes the listener.
func (w *world) unlisten(e *ear) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ears = slices.DeleteFunc(w.ears, func(other *ear) bool { return other == e })
}

// passSignals passes the signals of the store to all listeners, and reports whether there
// were any.
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

// signal signals all listeners of queues. Listeners of one process want the same slots,
// so they are signalled one after the other, and at no time at which one of them looks by
// itself: otherwise both would do so from then on.
func (w *world) signal(names ...string) {
	w.mu.Lock()
	ears := slices.Clone(w.ears)
	w.mu.Unlock()
	for signalled := make(map[*host]bool); len(ears) > 0; clear(signalled) {
		tick(upTo(w.rng, 10*time.Microsecond))
		ears = slices.DeleteFunc(ears, func(e *ear) bool {
			if signalled[e.host] {
				return false
			}
			if slices.Contains(names, e.queue) {
				signalled[e.host] = true
				signal(e.ready)
			}
			return true
		})
		tick(time.Nanosecond) // later signals come later
	}
}

// signal puts a signal into a channel that holds one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
