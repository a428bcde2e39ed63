package queue

import (
	"context"
	"fmt"
	"slices"
)

// Command pauses, resumes, cancels, retries, edits or forgets all tasks that a filter
// finds. It returns the number of tasks that it changed or, if they run, ordered to stop;
// see [Command]. [Queue.Pause], [Queue.Resume], [Queue.Cancel] and [Queue.Retry] do so
// for one task: they fail if its state does not allow it, and record neither an author
// nor a reason.
//
// A handler that returns nil although its task was ordered to pause or to cancel has
// succeeded. If it fails and that was the last attempt, the task is dead.
func (q *Queue) Command(ctx context.Context, c Command) (int, error) {
	n, err := q.store.Command(ctx, q.clock.Now(), c)
	q.soon.add(q.clock.Now())
	q.runs.heartbeatNow()
	return n, err
}

// Pause keeps a task from starting until it is resumed. A running task is ordered to stop:
// Pause returns at once, the context of its handler ends with [ErrPaused], and the task is
// paused when the handler has returned an error. Pause returns nil if the task is paused
// or has been ordered to pause.
// Errors: [ErrNotFound]; [ErrState] if the task is finished, or running and ordered to
// cancel.
func (q *Queue) Pause(ctx context.Context, id ID) error { return q.commandOne(ctx, OrderPause, id) }

// Resume ends the pause of a task, or takes back the order to pause a running one. It
// returns nil if the task is neither finished nor paused. Errors: [ErrNotFound];
// [ErrState] if the task is finished, or running and ordered to cancel.
func (q *Queue) Resume(ctx context.Context, id ID) error { return q.commandOne(ctx, OrderResume, id) }

// Cancel ends a task permanently. A running task is ordered to stop: Cancel returns at
// once, the context of its handler ends with [ErrCancelled], and the task is cancelled
// when the handler has returned an error; [Queue.Wait] waits for that. Cancel returns nil
// if the task is cancelled or has been ordered to cancel. Errors: [ErrNotFound];
// [ErrState] if the task succeeded or is dead.
func (q *Queue) Cancel(ctx context.Context, id ID) error { return q.commandOne(ctx, OrderCancel, id) }

// Retry restarts a dead or cancelled task with all its attempts, and ends the delay of a
// scheduled one. It returns nil if the task is held or waiting. Errors: [ErrNotFound];
// [ErrState] if the task is running, is paused or succeeded, as it may be when a call
// whose answer was lost is repeated.
func (q *Queue) Retry(ctx context.Context, id ID) error { return q.commandOne(ctx, OrderRetry, id) }

// commandOne carries out a command on one task.
func (q *Queue) commandOne(ctx context.Context, do Order, id ID) error {
	const tries = 3 // the task may change between a command without effect and the look at its state
	var task Task
	for range tries {
		n, err := q.Command(ctx, Command{Do: do, Filter: Filter{IDs: []ID{id}}})
		if err != nil || n > 0 {
			return err
		}
		if task, err = q.Get(ctx, id); err != nil || task.isAfter(do) {
			return err
		}
		if !task.commandable(do) {
			break
		}
	}
	order := ""
	if task.Order != 0 {
		order = fmt.Sprintf(" and has been ordered to %s", task.Order)
	}
	return fmt.Errorf("%w: cannot %s task %s: it is %s%s", ErrState, do, id, task.State, order)
}

// isAfter reports whether t is in a state in which the order leaves a task, so that the
// order had nothing to do.
func (t *Task) isAfter(do Order) bool {
	switch do {
	case OrderPause:
		return t.State == Paused || t.Order == OrderPause
	case OrderResume:
		return t.State.Pending() && t.State != Paused || t.State == Running && t.Order == 0
	case OrderCancel:
		return t.State == Cancelled || t.Order == OrderCancel
	case OrderRetry:
		return t.State == Held || t.State == Waiting
	default:
		return false
	}
}

// commandable reports whether an order changes t, or orders its worker to stop.
func (t *Task) commandable(do Order) bool {
	if t.State != Running {
		return slices.ContainsFunc(transitionTable, func(l Transition) bool {
			return l.From == t.State && l.On == do.Trigger()
		})
	}
	switch do {
	case OrderPause:
		return t.Order == 0
	case OrderResume:
		return t.Order == OrderPause
	default:
		return do == OrderCancel
	}
}
