package queue

import (
	"context"
	"slices"
)

// Predecessor is a predecessor of a task.
type Predecessor struct {
	Task           // if the task is forgotten, only its ID is set
	Forgotten bool `json:"forgotten,omitempty"`
}

// Predecessors returns the tasks that t comes after: those of After, then those of
// AfterAny, in their order. [Result] decodes the result of each.
//
// While t is unfinished, retention keeps its finished predecessors, except a predecessor
// that did not succeed and that a task waits for in After: see [Retention]. Such a predecessor, and
// a purged one, is Forgotten. A later task with the ID of a forgotten one is not
// returned. Errors: those of the store.
func (q *Queue) Predecessors(ctx context.Context, t Task) ([]Predecessor, error) {
	const page = 100 // tasks with their payloads and results
	before := slices.Concat(t.After, t.AfterAny)
	there := make(map[ID]Task, len(before))
	for ids := range slices.Chunk(before, page) {
		found, err := q.store.Find(ctx, Filter{IDs: ids}, Page{Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range found {
			there[found[i].ID] = found[i]
		}
	}
	all := make([]Predecessor, len(before))
	for i, id := range before {
		task, ok := there[id]
		if !ok || task.Submitted.After(t.Submitted) {
			all[i] = Predecessor{Task: Task{ID: id}, Forgotten: true}
			continue
		}
		all[i] = Predecessor{Task: task}
	}
	return all, nil
}
