package reference

import (
	"slices"

	"github.com/stintgo/stint/queue"
)

// watchers is the calls of Watch. The lock of the store guards them.
type watchers struct {
	buffer int // events that a watcher may be behind
	all    []*watcher
}

type watcher struct {
	events []queue.Event // events that the watcher has yet to receive
	missed int           // events dropped since the last of them
	woken  chan struct{} // holds one signal
}

func (ws *watchers) add() *watcher {
	w := &watcher{woken: make(chan struct{}, 1)}
	ws.all = append(ws.all, w)
	return w
}

func (ws *watchers) remove(w *watcher) {
	ws.all = slices.DeleteFunc(ws.all, func(other *watcher) bool { return other == w })
}

// send adds an event to each watcher's. It does not block.
func (ws *watchers) send(e queue.Event) {
	for _, w := range ws.all {
		if len(w.events) >= ws.buffer {
			w.missed++
			continue
		}
		e.Missed, w.missed = w.missed, 0
		w.events = append(w.events, e)
		signal(w.woken)
	}
}

// wake wakes all watchers.
func (ws *watchers) wake() {
	for _, w := range ws.all {
		signal(w.woken)
	}
}

// signal leaves a signal in a channel unless it holds one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
