package queue

import (
	"context"
	"fmt"
)

// NewID makes an ID: of a batch, say. IDs of one queue grow.
func (q *Queue) NewID() ID { return q.ids.New(q.clock.Now()) }

// Prepare gives a task its ID, so that others can name it before any of them is
// submitted. [Kind.Prepare] does so for a payload that is a Go value.
func (q *Queue) Prepare(spec Spec) NewTask { return NewTask{ID: q.NewID(), Spec: spec} }

// Submit accepts tasks that were prepared, of any kinds, all or none and in
// this order, and returns when they are durable. There may be [MaxSubmit] of them. Each may come After those that
// stand before it.
//
// An error that wraps [ErrUnavailable], or the end of ctx, leaves it open whether
// it has been done. Repeat the call with the same tasks: what was accepted
// is not accepted twice. Other errors: [ErrInvalid], also if tasks would wait for
// each other; [ErrTooLarge], [ErrFull].
func (q *Queue) Submit(ctx context.Context, tasks ...NewTask) ([]Receipt, error) {
	if err := checkCircles(tasks); err != nil {
		return nil, err
	}
	receipts, err := q.store.Submit(ctx, q.clock.Now(), tasks)
	for i := range tasks {
		q.dueAt(tasks[i].RunAt)
		q.dueAt(tasks[i].Deadline)
	}
	return receipts, err
}

// SubmitBatch accepts tasks as one batch and, with them, the one that comes then:
// it starts when no task of the batch is unfinished, whatever became of them; at
// once, if there are none. All are accepted, or none.
//
// The batch has the ID of the task that comes then. So [Queue.Wait] with it waits for
// the whole, and [Queue.Count] by [Filter.Batch] says how far it is. More tasks
// can be submitted with that Options.Batch at any time: a task of the batch may
// submit others, and if the one that comes then has not started, it waits for
// them too.
//
// A batch of more tasks than [MaxSubmit] allows is submitted in parts: first its tasks,
// each with the Options.Batch that [Queue.NewID] made, then the one that comes then, with
// that Options.AfterBatch.
//
// The receipts are those of the tasks; errors are as for [Queue.Submit]. The tasks
// may not name another batch. The one that comes then may, of which this batch is a
// part; but it has no Unique, since of the same batch submitted again there would
// be the tasks alone.
func (q *Queue) SubmitBatch(ctx context.Context, then NewTask, tasks ...NewTask) ([]Receipt, error) {
	if !then.Batch.IsZero() && then.Batch == then.ID || !then.AfterBatch.IsZero() && then.AfterBatch != then.ID {
		return nil, fmt.Errorf("%w: the task after a batch is not in it, and comes after no other batch", ErrInvalid)
	}
	if then.Unique != "" {
		return nil, fmt.Errorf("%w: the task after a batch has no Unique; to submit a batch again, repeat the call "+
			"with the same tasks", ErrInvalid)
	}
	then.AfterBatch = then.ID
	all := make([]NewTask, 0, len(tasks)+1)
	for i, t := range tasks {
		if !t.Batch.IsZero() && t.Batch != then.ID {
			return nil, fmt.Errorf("%w: task %d is in batch %s; a task is in one batch", ErrInvalid, i, t.Batch)
		}
		t.Batch = then.ID
		all = append(all, t)
	}
	receipts, err := q.Submit(ctx, append(all, then)...)
	if err != nil {
		return nil, err
	}
	return receipts[:len(tasks)], nil
}
