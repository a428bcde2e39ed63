package queue

import (
	"context"
	"iter"
)

// Dead yields the dead letters that a filter finds, the oldest first. What went
// wrong with each, and when, is in its [Task.Errors].
func (q *Queue) Dead(ctx context.Context, f Filter) iter.Seq2[Task, error] {
	return q.Find(ctx, ofDead(f))
}

// RetryDead has the dead letters that a filter finds begin anew, and returns how
// many did. They keep their age and their history; their failures are counted
// from 0 again. by names the person or the program that asks for it.
func (q *Queue) RetryDead(ctx context.Context, by string, f Filter) (int, error) {
	return q.Command(ctx, Command{Do: OrderRetry, Filter: ofDead(f), By: by})
}

// PurgeDead removes the dead letters that a filter finds, and returns how many.
// Tasks that come After one of them are cancelled, because it will never
// succeed. by names the person or the program that asks for it.
func (q *Queue) PurgeDead(ctx context.Context, by string, f Filter) (int, error) {
	return q.Command(ctx, Command{Do: OrderForget, Filter: ofDead(f), By: by})
}

func ofDead(f Filter) Filter {
	f.States = []State{Dead}
	return f
}

// Errors are what went wrong with the task so far, the oldest first: the steps of
// attempts that failed, of leases that were lost, of a deadline that passed, and
// of work that was put aside when it was submitted. Detail is the error. As with
// all steps, of a task that has more than [MaxSteps] of them the oldest are gone.
func (t *Task) Errors() (errs []Step) {
	for _, s := range t.Steps {
		if s.On == OnFailure || s.On == OnLost || s.On == OnExpire || s.On == OnSubmit && s.To == Dead {
			errs = append(errs, s)
		}
	}
	return errs
}
