package storetest

import (
	"context"
	"slices"

	"github.com/stintgo/stint/queue"
)

// watcher is somebody who is told of every change. Its fields are guarded by
// the store's lock.
type watcher struct {
	events []queue.Event // that it has yet to be told of
	missed int           // since the last of them
	woken  chan struct{} // holds one signal
}

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// tell tells the watchers of a change. It waits for none of them.
func (n *naive) tell(e queue.Event) {
	for _, w := range n.watchers {
		if len(w.events) >= n.cfg.WatchBuffer {
			w.missed++
			continue
		}
		e.Missed, w.missed = w.missed, 0
		w.events = append(w.events, e)
		w.wake()
	}
}

func (n *naive) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	w := &watcher{woken: make(chan struct{}, 1)}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return queue.ErrClosed
	}
	n.watchers = append(n.watchers, w)
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.watchers = slices.DeleteFunc(n.watchers, func(other *watcher) bool { return other == w })
	}()
	begun()
	for {
		n.mu.Lock()
		events, closed := w.events, n.closed
		w.events = nil
		n.mu.Unlock()
		for _, e := range events {
			fn(e)
		}
		if closed {
			return queue.ErrClosed
		}
		select {
		case <-w.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
