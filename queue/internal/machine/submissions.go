package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// submissions accepts submitted tasks, all tasks of a call or none. A task whose ID or
// unique name the store already has is not accepted again: its receipt names the existing
// task. A task with the fingerprint of a poison task becomes Dead at once. checked needs
// no lock; the caller of every other method holds the lock of the machine.
type submissions struct {
	cfg          *Config
	clock        *clock
	counters     *counters
	fingerprints *fingerprints
	holds        *holds
	journal      *journal.Journal
	settings     *settingSet
	states       *stateIndex
	tasks        *tasks
	transitions  *transitions
	uniqueNames  *uniqueNames
}

// acceptAll accepts the tasks of a call, all of them or none.
func (s *submissions) acceptAll(tasks []queue.NewTask, prints []fingerprint) ([]queue.Receipt, error) {
	receipts, fresh, err := s.receive(tasks)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		if fresh[i] {
			s.accept(&tasks[i], s.fingerprints.sameAs(i, prints))
		}
	}
	return receipts, nil
}

// receive returns the receipts of tasks without accepting them, and which of them are new
// and have to be accepted. The error is that of the first task that cannot be accepted.
func (s *submissions) receive(tasks []queue.NewTask) (receipts []queue.Receipt, fresh []bool, err error) {
	receipts, fresh = make([]queue.Receipt, len(tasks)), make([]bool, len(tasks))
	var call submittedCall
	if len(tasks) > 1 {
		call.ids, call.unique = make(map[queue.ID]queue.ID, len(tasks)), map[string]queue.ID{}
		call.more = map[string]int{}
	}
	for i := range tasks {
		t := &tasks[i]
		existing, err := s.existing(t, call)
		if err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		receipts[i] = queue.Receipt{ID: t.ID, Existing: !existing.IsZero() && existing != t.ID}
		if !existing.IsZero() {
			receipts[i].ID = existing
			call.known(t, existing)
			if existing == t.ID && s.known(existing) == 0 {
				call.forgot(existing)
			}
			continue
		}
		if err := s.resolve(t, call); err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		name := queueOf(&t.Spec)
		if limit, unfinished := s.settings.pendingLimit(name); limit > 0 {
			if unfinished+call.more[name] >= limit {
				return nil, nil, fmt.Errorf("task %d: %w", i, &FullError{name, unfinished, limit})
			}
			if call.more != nil {
				call.more[name]++
			}
		}
		fresh[i] = true
		call.accepted(t)
	}
	return receipts, fresh, nil
}

// FullError is the error of a submission to a queue that has as many unfinished tasks as its
// limit allows. It wraps [queue.ErrFull].
type FullError struct {
	Queue             string
	Unfinished, Limit int // tasks
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%s: %s has %d unfinished tasks, its limit is %d", queue.ErrFull, e.Queue, e.Unfinished, e.Limit)
}

// Unwrap returns [queue.ErrFull].
func (e *FullError) Unwrap() error { return queue.ErrFull }

// existing returns the ID of the task that a submitted one duplicates, zero if there is
// none: by its ID, as when a call is repeated, or by its unique name.
func (s *submissions) existing(t *queue.NewTask, call submittedCall) (queue.ID, error) {
	if as, twice := call.ids[t.ID]; twice {
		return as, nil
	}
	if s.known(t.ID) != 0 {
		return t.ID, nil
	}
	if t.Unique == "" {
		return queue.ID{}, nil
	}
	row := uniqueRow(&t.Spec)
	if id, ok := call.unique[row]; ok {
		return id, nil
	}
	if id := s.uniqueNames.of(&t.Spec); !id.IsZero() {
		return id, nil
	}
	id, err := s.uniqueNames.named(row)
	if s.known(id) == 0 { // the row is left over from a task that was forgotten while its row could not be read
		id = queue.ID{}
	}
	return id, err
}

// known returns the state of a task, 0 if there is none.
func (s *submissions) known(id queue.ID) queue.State {
	if t := s.tasks.get(id); t != nil {
		return t.state
	}
	return 0
}

// resolve checks that the predecessors of t exist. Among them it replaces the IDs of
// tasks of this call that are duplicates by the IDs of the existing tasks. An existing task
// that is forgotten, and whose unique name is reserved, is finished, but may have failed.
func (s *submissions) resolve(t *queue.NewTask, call submittedCall) error {
	for _, after := range []*[]queue.ID{&t.After, &t.AfterAny} {
		if len(*after) == 0 {
			continue // without a write to t: concurrent calls may submit the same tasks
		}
		*after = slices.Clone(*after)
		for i, id := range *after {
			as, ofCall := call.ids[id]
			if ofCall {
				(*after)[i] = as
			}
			switch {
			case call.accepts(as) || s.known((*after)[i]) != 0 || ofCall && after == &t.AfterAny:
			case ofCall:
				return fmt.Errorf("%w: it comes after task %s, and its Unique is that of task %s, which is forgotten "+
					"and may have failed: use AfterAny, or a UniqueFor no longer than tasks are kept", queue.ErrInvalid, id, as)
			default:
				return fmt.Errorf("%w: it comes after task %s, which the store does not have", queue.ErrInvalid, id)
			}
		}
	}
	return nil
}

// accept adds a submitted task. It becomes Dead at once if same, a poison task with the
// same fingerprint, is not nil.
func (s *submissions) accept(n *queue.NewTask, same *task) {
	row := record.Row{Task: queue.Task{ID: n.ID, Spec: n.Spec, Submitted: s.clock.time()}, Seq: s.counters.nextSeq()}
	row.Queue = queueOf(&n.Spec)
	var submitted [1]queue.Step
	row.Steps = submitted[:0]
	if n.Unique != "" {
		s.journal.Set(uniqueRow(&n.Spec), slices.Clone(n.ID[:]), false)
	}
	w := cause{on: queue.OnSubmit}
	t := s.states.admit(&row)
	if same != nil {
		w.detail = fmt.Sprintf("the same work as task %s, which has crashed its workers", same.id)
		row.Error = w.detail
		s.transitions.put(t, &row, queue.Dead, w)
		return
	}
	s.holds.join(t, &row)
	s.transitions.put(t, &row, s.transitions.pending(t, unix(row.RunAt)), w)
}

// checked validates the tasks of a call, checks that the store has room, and returns the
// tasks, as a copy if resolve may change them. It needs no lock.
func (s *submissions) checked(tasks []queue.NewTask) ([]queue.NewTask, error) {
	if len(tasks) > queue.MaxSubmit {
		return nil, fmt.Errorf("%w: %d tasks in one call, at most %d are possible: submit them in several calls",
			queue.ErrTooLarge, len(tasks), queue.MaxSubmit)
	}
	after := false
	for i := range tasks {
		if err := validateTask(&tasks[i], s.cfg.MaxPayload); err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		after = after || len(tasks[i].After)+len(tasks[i].AfterAny) > 0
	}
	if after {
		tasks = slices.Clone(tasks) // resolve changes After and AfterAny
	}
	if s.cfg.Room != nil { // only submissions check it: calls that end tasks make room
		switch err := s.cfg.Room(); {
		case errors.Is(err, queue.ErrClosed):
			return nil, queue.ErrClosed
		case err != nil:
			return nil, fmt.Errorf("%w: the call was refused: %w", queue.ErrUnavailable, err)
		}
	}
	return tasks, nil
}

// submittedCall records the tasks of a call that precede the present one. unique, ids and
// more are nil if the call has only one task.
type submittedCall struct {
	unique map[string]queue.ID   // by the keys of the rows of unique names
	ids    map[queue.ID]queue.ID // from submitted IDs to the IDs of accepted or existing tasks
	gone   map[queue.ID]bool     // tasks whose unique name a forgotten task still reserves
	more   map[string]int        // tasks that will be accepted, by queue, of queues with a limit of pending tasks
}

// known records that t is, or duplicates, the task with the ID as.
func (a *submittedCall) known(t *queue.NewTask, as queue.ID) {
	if a.ids != nil {
		a.ids[t.ID] = as
	}
}

// accepted records that a task will be accepted.
func (a *submittedCall) accepted(t *queue.NewTask) {
	a.known(t, t.ID)
	if a.ids != nil && t.Unique != "" {
		a.unique[uniqueRow(&t.Spec)] = t.ID
	}
}

// forgot records that a task has the ID of a forgotten task that reserves its unique name.
func (a *submittedCall) forgot(id queue.ID) {
	if a.gone == nil {
		a.gone = make(map[queue.ID]bool)
	}
	a.gone[id] = true
}

// accepts reports whether the call has a task with an ID that will be accepted.
func (a *submittedCall) accepts(id queue.ID) bool {
	as, ofCall := a.ids[id]
	return ofCall && as == id && !a.gone[id]
}
