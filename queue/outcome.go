package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintgo/stint/retry"
)

// outcome makes an outcome of what a handler returned, whose context is ctx.
func (q *Queue) outcome(ctx context.Context, a *Attempt, err error) Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := Outcome{ID: a.lease.id, Token: a.lease.token, Checkpoint: a.checkpoint}
	if err == nil {
		o.Kind, o.Result = OutcomeSuccess, a.result
		return o
	}
	var again snooze
	switch cause := context.Cause(ctx); {
	case interrupted(cause):
		o.Kind = OutcomeRelease
	case errors.Is(cause, ErrTooLarge):
		o.Kind, o.Error, o.Permanent, o.Checkpoint = OutcomeFailure, cause.Error(), true, nil
	case IsShortage(err):
		o.Kind, o.Error = OutcomeRelease, err.Error()
	case errors.As(err, &again):
		o.Kind, o.RunAt = OutcomeSnooze, q.clock.Now().Add(again.delay)
	default:
		o.Kind, o.Error, o.Permanent = OutcomeFailure, err.Error(), retry.IsPermanent(err)
		o.RunAt = q.clock.Now().Add(q.delay(&a.Task, err))
	}
	return o
}

// interrupted reports whether a context ended for what is not its handler's fault.
func interrupted(cause error) bool {
	return slices.Contains([]error{ErrPaused, ErrCancelled, ErrStale, ErrStopping}, cause)
}

// delay is how long a task waits that has failed once more: as long as the
// error says, or else by the policy, which grows from the delay before.
func (q *Queue) delay(t *Task, err error) time.Duration {
	if d, ok := retry.Delay(err); ok {
		return d
	}
	var before time.Duration
	for i, step := range slices.Backward(t.Steps) {
		if step.On == OnFailure {
			if t.Failures > 0 && i+1 < len(t.Steps) && t.Steps[i+1].On == OnDue {
				before = t.Steps[i+1].At.Sub(step.At)
			}
			break
		}
	}
	policy := q.cfg.Retry
	policy.Attempts = t.Failures + 2 // the store counts them
	d, _ := policy.Next(t.Failures+1, before, q.cfg.Random)
	return d
}
