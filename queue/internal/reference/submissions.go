package reference

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submissions decides which new tasks are accepted.
type Submissions struct {
	tasks    *Tasks
	before   Predecessors
	settings *Settings
}

// Receive answers the tasks of a call, and returns those that are new. It changes nothing.
// Its error is all that is wrong: ErrInvalid for unknown predecessors, ErrFull.
func (s Submissions) Receive(
	now time.Time, tasks []queue.NewTask,
) (receipts []queue.Receipt, fresh []*Task, err error) {
	var errs []error
	instead := make(map[queue.ID]queue.ID) // of tasks that have the Unique of others
	for i := range tasks {
		t := newTask(now, &tasks[i], s.tasks.submitted+uint64(len(fresh))+1)
		if same, ok := s.tasks.same(now, t, fresh); ok {
			receipts = append(receipts, queue.Receipt{ID: same, Existing: same != t.ID})
			instead[t.ID] = same
			continue
		}
		for of, after := range [][]queue.ID{t.After, t.AfterAny} {
			for j, id := range after {
				there, ok := instead[id]
				if ok {
					id, after[j] = there, there
				}
				if ok && of == 1 {
					continue // it exists, or is finished and forgotten
				}
				if s.tasks.Get(id) == nil && !slices.ContainsFunc(fresh, func(f *Task) bool { return f.ID == id }) {
					errs = append(errs,
						fmt.Errorf("task %d: %w: it comes after task %s, which is not known", i, queue.ErrInvalid, id))
				}
			}
		}
		unfinished := s.tasks.Unfinished(t.Queue)
		for _, f := range fresh {
			if f.Queue == t.Queue {
				unfinished++
			}
		}
		if limit := s.settings.InForce(t.Queue).Pending; limit > 0 && unfinished >= limit {
			errs = append(errs, fmt.Errorf("task %d: %w: queue %s has %d unfinished tasks", i, queue.ErrFull, t.Queue, limit))
		}
		fresh = append(fresh, t)
		receipts = append(receipts, queue.Receipt{ID: t.ID})
	}
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return receipts, fresh, nil
}

// First returns the first step of a task that was added, and the error of the task if it
// has the work of one that crashed its workers.
func (s Submissions) First(now time.Time, t *Task) (step queue.Step, poisoned string) {
	step = queue.Step{At: now, On: queue.OnSubmit}
	if poison := s.tasks.Poison(t); poison != nil {
		step.To = queue.Dead
		step.Detail = fmt.Sprintf("the same work as task %s, which has crashed its workers", poison.ID)
		return step, step.Detail
	}
	step.To = s.before.Pending(now, t)
	return step, ""
}
