package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
)

// Get returns a task. Errors: ErrNotFound.
func (q *Queue) Get(ctx context.Context, id ID) (Task, error) {
	return readTask(ctx, q.store, id, Page{})
}

// readTask reads a task as a page says. Errors: ErrNotFound.
func readTask(ctx context.Context, store Store, id ID, p Page) (Task, error) {
	found, err := store.Find(ctx, Filter{IDs: []ID{id}}, p)
	if err != nil {
		return Task{}, err
	}
	if len(found) == 0 {
		return Task{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return found[0], nil
}

// Find yields the tasks that a filter finds, the oldest first. It reads them page by
// page, so it yields each task as it was at some time during the loop. An error ends the loop,
// a [PartialError] after the tasks of the groups that answer.
func (q *Queue) Find(ctx context.Context, f Filter) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		const size = 100
		var missing error // of the first page without the tasks of some groups
		for page := (Page{Limit: size}); ; {
			found, err := q.store.Find(ctx, f, page)
			if _, partial := errors.AsType[*PartialError](err); err != nil && !partial {
				yield(Task{}, err)
				return
			}
			missing = cmp.Or(missing, err)
			for i := range found {
				if !yield(found[i], nil) {
					return
				}
			}
			if len(found) < size {
				break
			}
			page.After = found[size-1].ID
		}
		if missing != nil {
			yield(Task{}, missing)
		}
	}
}

// Count returns the number of tasks that a filter finds, by state, for example of a
// batch. It reads every task that the filter may find, with its payload: some
// microseconds for each task of the store, unless the filter names queues, states or IDs.
// [Queue.Stats] returns the counts of whole queues without reading tasks. Finished tasks
// are counted as long as they are kept.
func (q *Queue) Count(ctx context.Context, f Filter) (map[State]int, error) {
	counts := make(map[State]int)
	for task, err := range q.Find(ctx, f) {
		if err != nil {
			return nil, err
		}
		counts[task.State]++
	}
	return counts, nil
}
