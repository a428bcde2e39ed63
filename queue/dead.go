package queue

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Dead yields the dead letters that a filter finds, the oldest first. [Task.Errors] has
// the errors of each, with their times. Errors: those of [Queue.Find], and [ErrInvalid]
// if the filter has other States than [Dead].
func (q *Queue) Dead(ctx context.Context, f Filter) iter.Seq2[Task, error] {
	f, err := ofDead(f)
	if err != nil {
		return func(yield func(Task, error) bool) { yield(Task{}, err) }
	}
	return q.Find(ctx, f)
}

// RetryDead restarts the dead letters that a filter finds, and returns their number. They
// keep their age and their history; their failures are counted from 0 again. by names the
// author of the command. Errors: those of [Queue.Command], and [ErrInvalid] if the filter
// has other States than [Dead].
func (q *Queue) RetryDead(ctx context.Context, by string, f Filter) (int, error) {
	return q.commandDead(ctx, OrderRetry, by, f)
}

// PurgeDead removes the dead letters that a filter finds, and returns their number. Tasks
// that come After one of them are cancelled, because it will never succeed. by names the
// author of the command. Errors: those of [Queue.Command], and [ErrInvalid] if the filter
// has other States than [Dead].
func (q *Queue) PurgeDead(ctx context.Context, by string, f Filter) (int, error) {
	return q.commandDead(ctx, OrderForget, by, f)
}

func (q *Queue) commandDead(ctx context.Context, do Order, by string, f Filter) (int, error) {
	f, err := ofDead(f)
	if err != nil {
		return 0, err
	}
	return q.Command(ctx, Command{Do: do, Filter: f, By: by})
}

// ofDead narrows a filter to dead letters.
func ofDead(f Filter) (Filter, error) {
	if slices.ContainsFunc(f.States, func(s State) bool { return s != Dead }) {
		return f, fmt.Errorf("%w: the filter has the States %v, and dead letters are all %s: leave States empty, "+
			"or call Find or Command", ErrInvalid, f.States, Dead)
	}
	f.States = []State{Dead}
	return f, nil
}

// Errors returns the steps with an error, the oldest first: attempts that failed, leases
// that were lost, a deadline that passed, and a fingerprint of poison that refused the
// task at its submission. Detail has the error. A task keeps [MaxSteps] steps, so older
// ones may be gone.
func (t *Task) Errors() (errs []Step) {
	for _, s := range t.Steps {
		if s.On == OnFailure || s.On == OnLost || s.On == OnExpire || s.On == OnSubmit && s.To == Dead {
			errs = append(errs, s)
		}
	}
	return errs
}
