package machine

import (
	"context"
	"sync"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// watcher is somebody who is told of every change.
type watcher struct {
	events  chan queue.Event
	missed  int // since the last one that it was told of; guarded by the machine's lock
	stopped sync.Once
}

func (w *watcher) stop() { w.stopped.Do(func() { close(w.events) }) }

// Watch is as [queue.Store] says.
func (m *Machine) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	w := &watcher{events: make(chan queue.Event, m.cfg.WatchBuffer)}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return queue.ErrClosed
	}
	m.watchers[w] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, w)
	}()
	begun()
	for {
		select {
		case e, ok := <-w.events:
			if !ok {
				return queue.ErrClosed
			}
			fn(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell tells the watchers of the last step of a row.
func (m *Machine) tell(row *record.Row, from queue.State) {
	if len(m.watchers) == 0 {
		return
	}
	m.send(queue.Event{ID: row.ID, Queue: row.Queue, Kind: row.Kind, From: from, Step: row.Steps[len(row.Steps)-1]})
}

// tellForgotten tells the watchers of a task that is gone.
func (m *Machine) tellForgotten(row *record.Row, w why) {
	m.send(queue.Event{
		ID: row.ID, Queue: row.Queue, Kind: row.Kind, From: row.State,
		Step: queue.Step{At: m.time(), On: w.on, By: w.by, Detail: w.detail},
	})
}

func (m *Machine) send(e queue.Event) {
	for w := range m.watchers {
		e.Missed = w.missed
		select {
		case w.events <- e:
			w.missed = 0
		default:
			w.missed++
		}
	}
}

// count counts what has ended.
func (l *line) count(row *record.Row, on queue.Trigger) {
	ended := &l.ended
	switch on {
	case queue.OnFailure:
		ended.Failed++
	case queue.OnLost:
		ended.Lost++
	default:
	}
	switch row.State {
	case queue.Succeeded:
		ended.Succeeded++
	case queue.Dead:
		ended.Dead++
	case queue.Cancelled:
		ended.Cancelled++
	default:
	}
}
