package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submit is as [queue.Store] says.
func (m *Machine) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	tasks, err := m.checked(tasks)
	if err != nil {
		return nil, err
	}
	works := m.fingerprints.of(tasks)
	if err := m.steps.beginChange(ctx, now); err != nil {
		return nil, err
	}
	receipts, err := m.submissions.acceptAll(tasks, works)
	if syncErr := m.steps.end(ctx); err == nil {
		err = syncErr
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// checked are the tasks of a call, completed, if they can be tasks at all and
// there is room for any.
func (m *Machine) checked(tasks []queue.NewTask) ([]queue.NewTask, error) {
	if len(tasks) > queue.MaxSubmit {
		return nil, fmt.Errorf("%w: %d tasks in one call, at most %d are possible: submit them in several calls",
			queue.ErrTooLarge, len(tasks), queue.MaxSubmit)
	}
	if slices.ContainsFunc(tasks, func(t queue.NewTask) bool { return len(t.After)+len(t.AfterAny) > 0 }) {
		tasks = slices.Clone(tasks) // these may come to be others
	}
	for i := range tasks {
		if err := m.validate(&tasks[i]); err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
	}
	if m.cfg.Room != nil { // what ends tasks, and makes room, is not asked
		if err := m.cfg.Room(); err != nil {
			return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		}
	}
	return tasks, nil
}

// arrivals are the tasks of a call that come before one. Those of a call with one
// task have no maps.
type arrivals struct {
	unique map[string]queue.ID   // by their rows
	ids    map[queue.ID]queue.ID // as which tasks are known
	more   map[string]int        // by queue
}

// known notes as which task one is known.
func (a *arrivals) known(t *queue.NewTask, as queue.ID) {
	if a.ids != nil {
		a.ids[t.ID] = as
	}
}

// accepted notes that a task will be.
func (a *arrivals) accepted(t *queue.NewTask) {
	a.known(t, t.ID)
	if a.ids == nil {
		return
	}
	if t.Unique != "" {
		a.unique[uniqueRow(&t.Spec)] = t.ID
	}
	a.more[queueOf(&t.Spec)]++
}

// accepts reports whether a task of the call, known by its ID, will be accepted.
func (a *arrivals) accepts(id queue.ID) bool {
	as, ofCall := a.ids[id]
	return ofCall && as == id
}

// uniqueRow is the key of the row that says which task has a Unique.
func uniqueRow(s *queue.Spec) string { return rowUnique + uniqueName(s) }
