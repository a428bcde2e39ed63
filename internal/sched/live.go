package sched

import (
	"context"

	"github.com/stintgo/stint/internal/shrink"
)

// liveTasks has the running tasks that have a context of their own, which [Engine.Close]
// cancels.
type liveTasks struct {
	e *Engine // immutable

	// Guarded by the engine's lock.
	all  map[*Task]struct{}
	peak int // see shrink.Delete
}

// add adds a task whose own context has been made. It returns the cause with which that
// context must end at once, if its function has ended or the engine is closed by force.
func (l *liveTasks) add(t *Task) error {
	l.e.lock()
	defer l.e.unlock()
	switch {
	case l.e.killed.Load():
		return ErrClosed
	case t.state.Load() == taskEnded:
		return context.Canceled
	}
	l.all[t] = struct{}{}
	return nil
}

// remove removes a task that has ended.
func (l *liveTasks) remove(t *Task) {
	l.e.lock()
	shrink.Delete(&l.all, &l.peak, t)
	l.e.unlock()
}

// removeAll removes all tasks and returns them. The lock is held.
func (l *liveTasks) removeAll() map[*Task]struct{} {
	all := l.all
	l.all = make(map[*Task]struct{})
	return all
}
