package machine

import (
	"sync"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// watchers sends an event for each change of a task to every watcher of the store. It
// does not block: a watcher whose buffer is full misses events, and its next event has
// the number of missed ones. The caller of each method holds the lock of the machine.
type watchers struct {
	clock *clock
	all   map[*watcher]struct{}
}

// add registers a watcher with a buffer of n events.
func (o *watchers) add(n int) *watcher {
	w := &watcher{events: make(chan queue.Event, n)}
	o.all[w] = struct{}{}
	return w
}

// remove unregisters a watcher.
func (o *watchers) remove(w *watcher) { delete(o.all, w) }

// stop ends all calls of Watch. Later events have no receiver.
func (o *watchers) stop() {
	for w := range o.all {
		w.stop()
	}
	clear(o.all)
}

// any reports whether there is a watcher.
func (o *watchers) any() bool { return len(o.all) > 0 }

// notify sends the last step of a row to the watchers.
func (o *watchers) notify(row *record.Row, from queue.State) {
	if len(o.all) == 0 {
		return
	}
	o.send(queue.Event{ID: row.ID, Queue: row.Queue, Kind: row.Kind, From: from, Step: row.Steps[len(row.Steps)-1]})
}

// notifyForgotten sends an event for a task that is forgotten.
func (o *watchers) notifyForgotten(row *record.Row, w cause) {
	o.send(queue.Event{
		ID: row.ID, Queue: row.Queue, Kind: row.Kind, From: row.State,
		Step: queue.Step{At: o.clock.time(), On: w.on, By: w.by, Detail: w.detail},
	})
}

// send sends an event to the watchers that have room in their buffers.
func (o *watchers) send(e queue.Event) {
	for w := range o.all {
		e.Missed = w.missed
		select {
		case w.events <- e:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// watcher is one call of Watch.
type watcher struct {
	events  chan queue.Event
	missed  int // events missed since the last one that was sent; guarded by the lock of the machine
	stopped sync.Once
}

func (w *watcher) stop() { w.stopped.Do(func() { close(w.events) }) }
