package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Submit is as [queue.Store] says.
func (m *Machine) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	tasks, err := m.checked(tasks)
	if err != nil {
		return nil, err
	}
	works := m.fingerprints.of(tasks)
	if err := m.beginChange(ctx, now); err != nil {
		return nil, err
	}
	receipts, err := m.acceptAll(tasks, works)
	if syncErr := m.end(ctx); err == nil {
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

// acceptAll makes tasks of a call's, all of them or none.
func (m *Machine) acceptAll(tasks []queue.NewTask, works []fingerprint) ([]queue.Receipt, error) {
	receipts, fresh, err := m.receive(tasks)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		if fresh[i] {
			m.accept(&tasks[i], m.fingerprints.sameAs(i, works))
		}
	}
	return receipts, nil
}

// receive answers tasks without accepting them, and says which are fresh and to
// be accepted. The error is that of one that cannot be.
func (m *Machine) receive(tasks []queue.NewTask) (receipts []queue.Receipt, fresh []bool, err error) {
	receipts, fresh = make([]queue.Receipt, len(tasks)), make([]bool, len(tasks))
	var call arrivals
	if len(tasks) > 1 {
		call.ids, call.unique = make(map[queue.ID]queue.ID, len(tasks)), map[string]queue.ID{}
		call.more = map[string]int{}
	}
	for i := range tasks {
		t := &tasks[i]
		existing, err := m.existing(t, call)
		if err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		receipts[i] = queue.Receipt{ID: t.ID, Existing: !existing.IsZero() && existing != t.ID}
		if !existing.IsZero() {
			receipts[i].ID = existing
			call.known(t, existing)
			continue
		}
		if err := m.resolve(t, call); err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		name := queueOf(&t.Spec)
		if limit, unfinished := m.settings.pendingLimit(name); limit > 0 && unfinished+call.more[name] >= limit {
			return nil, nil, fmt.Errorf("task %d: %w: %s has %d unfinished tasks, its limit is %d",
				i, queue.ErrFull, name, unfinished, limit)
		}
		fresh[i] = true
		call.accepted(t)
	}
	return receipts, fresh, nil
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

// existing returns the task that a new one is the same as: by its ID, if the
// call is repeated, or by its Unique.
func (m *Machine) existing(t *queue.NewTask, call arrivals) (queue.ID, error) {
	if as, twice := call.ids[t.ID]; twice {
		return as, nil
	}
	if m.known(t.ID) != 0 {
		return t.ID, nil
	}
	if t.Unique == "" {
		return queue.ID{}, nil
	}
	row := uniqueRow(&t.Spec)
	if id, ok := call.unique[row]; ok {
		return id, nil
	}
	if id := m.uniqueNames.of(&t.Spec); !id.IsZero() {
		return id, nil
	}
	id, err := m.uniqueNames.named(row)
	if m.known(id) == 0 { // it was forgotten, and could not be read by then
		id = queue.ID{}
	}
	return id, err
}

// uniqueRow is the key of the row that says which task has a Unique.
func uniqueRow(s *queue.Spec) string { return rowUnique + uniqueName(s) }

// known returns the state of a task, 0 if there is none.
func (m *Machine) known(id queue.ID) queue.State {
	if t := m.tasks.get(id); t != nil {
		return t.state
	}
	return 0
}

// resolve checks that the tasks that a new one comes after are there, and puts
// those in that were there already in place of others of the call.
func (m *Machine) resolve(t *queue.NewTask, call arrivals) error {
	for _, after := range []*[]queue.ID{&t.After, &t.AfterAny} {
		if len(*after) == 0 {
			continue // and the task is the caller's, who may be submitting it twice at a time
		}
		*after = slices.Clone(*after)
		for i, id := range *after {
			as, ofCall := call.ids[id]
			if ofCall {
				(*after)[i] = as
			}
			if !call.accepts(as) && m.known((*after)[i]) == 0 {
				return fmt.Errorf("%w: it comes after task %s, which the store does not have", queue.ErrInvalid, id)
			}
		}
	}
	return nil
}

// accept makes a task of what was submitted. It is dead at once if there is a dead
// one that did the same work and has crashed its workers.
func (m *Machine) accept(n *queue.NewTask, same *task) {
	row := record.Row{Task: queue.Task{ID: n.ID, Spec: n.Spec, Submitted: m.clock.time()}, Seq: m.counters.nextSeq()}
	row.Queue = queueOf(&n.Spec)
	var submitted [1]queue.Step
	row.Steps = submitted[:0]
	if n.Unique != "" {
		m.journal.set(uniqueRow(&n.Spec), slices.Clone(n.ID[:]), false)
	}
	w := why{on: queue.OnSubmit}
	t := m.states.admit(&row)
	if same != nil {
		w.detail = fmt.Sprintf("the same work as task %s, which has crashed its workers", same.id)
		row.Error = w.detail
		m.transitions.put(t, &row, queue.Dead, w)
		return
	}
	m.holds.join(t, &row)
	m.transitions.put(t, &row, m.transitions.pending(t, unix(row.RunAt)), w)
}
