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
	m.steps.mu.Lock()
	if m.steps.closed {
		m.steps.mu.Unlock()
		return queue.ErrClosed
	}
	w := m.watchers.add(m.cfg.WatchBuffer)
	m.steps.mu.Unlock()
	defer func() {
		m.steps.mu.Lock()
		defer m.steps.mu.Unlock()
		m.watchers.remove(w)
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
