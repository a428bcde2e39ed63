package queue

import (
	"context"
	"fmt"
)

// NewID returns a new ID, for example of a batch. The IDs of one queue grow.
func (q *Queue) NewID() ID { return q.ids.New(q.clock.Now()) }

// Prepare returns a task with a new ID, so that other tasks can name it before it is
// submitted. [Kind.Prepare] does so for a payload that is a Go value.
func (q *Queue) Prepare(spec Spec) NewTask { return NewTask{ID: q.NewID(), Spec: spec} }

// Submit accepts tasks, of any kinds, all or none and in this order, and returns when
// they are durable. There may be [MaxSubmit] of them. Each may come After tasks before it
// in the list.
//
// After an error that wraps [ErrUnavailable], or the end of ctx, the result is unknown.
// Repeat the call with the same tasks: no task is accepted twice. Other errors:
// [ErrInvalid], also if tasks would wait for each other; [ErrTooLarge], [ErrFull].
func (q *Queue) Submit(ctx context.Context, tasks ...NewTask) ([]Receipt, error) {
	if err := checkCycles(tasks); err != nil {
		return nil, err
	}
	receipts, err := q.store.Submit(ctx, q.clock.Now(), tasks)
	for i := range tasks {
		q.soon.add(tasks[i].RunAt)
		q.soon.add(tasks[i].Deadline)
	}
	return receipts, err
}

// SubmitBatch accepts tasks as one batch, and with them a follower: it starts when no
// task of the batch is unfinished, whatever their outcomes; at once, if the batch is
// empty. All are accepted, or none.
//
// The batch has the ID of the follower. So [Queue.Wait] with that ID waits for the whole,
// and [Queue.Count] by [Filter.Batch] returns the progress. More tasks can be submitted
// with that Options.Batch at any time, also by tasks of the batch; a follower that
// neither runs nor is finished waits for them too.
//
// The tasks and the follower together are at most [MaxSubmit]. A batch of more is submitted in
// parts: first its tasks, each with the Options.Batch of one [Queue.NewID], then the follower, with that
// Options.AfterBatch.
//
// The receipts are those of the tasks; errors are as for [Queue.Submit]. A task whose Unique
// the store knows is not accepted again, so the earlier task with that name is not in the
// batch. For the follower to wait for it too, put the ID of the new task into its AfterAny,
// which then stands for the earlier one. The tasks may not name another batch. The follower
// may, for nested batches. It must have no Unique: a repeated batch would be submitted without
// its follower.
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
