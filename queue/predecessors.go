package queue

import (
	"context"
	"slices"
)

// Predecessor is a task that another one comes after.
type Predecessor struct {
	Task           // only its ID is set if the task is forgotten
	Forgotten bool `json:"forgotten,omitempty"`
}

// Predecessors reads the tasks that t comes after: first those of After, then those of
// AfterAny, in their order. [Result] reads what each of them has returned.
//
// While t is unfinished, retention forgets none of them that is finished, unless a task
// waits for its success in vain: see [Retention]. So a handler finds them all, but for
// those that were purged, or had such a dependent; they are Forgotten. A later task with
// the ID of a forgotten one is not taken for it. Errors: those of the store.
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
