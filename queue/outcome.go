package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/retry"
)

// textMost limits the bytes of an error or note that a session sends, since a server refuses a
// call with a very long one. Stores keep less of it, and mark what they have cut.
const textMost = 2 * MaxReason

// cut returns the beginning of a text that is too long to send, and any other text as it is.
func cut(text string) string {
	if len(text) <= textMost {
		return text
	}
	return strings.Clone(text[:textMost]) // without the memory of the rest
}

// outcomeOf returns the outcome of an attempt for the error of its handler, whose context is
// ctx. The attempt must have a queue.
func (a *Attempt) outcomeOf(ctx context.Context, err error) Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := Outcome{ID: a.lease.id, Token: a.lease.token, Checkpoint: a.checkpoint, InTx: a.inTx}
	a.sent = a.saved
	if err == nil {
		o.Kind, o.Result = OutcomeSuccess, a.result
		return o
	}
	var again snooze
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTooLarge):
		o.Kind, o.Error, o.Permanent, o.Checkpoint = OutcomeFailure, cause.Error(), true, nil
		a.sent = a.stored
	case interrupted(cause):
		o.Kind = OutcomeRelease
	case IsShortage(err) && cause == nil: // a shortage that lasts until the Timeout is a failure
		o.Kind, o.Error = OutcomeRelease, cut(err.Error())
	case errors.As(err, &again):
		o.Kind, o.RunAt = OutcomeSnooze, a.queue.clock.Now().Add(again.delay)
	default:
		o.Kind, o.Error, o.Permanent = OutcomeFailure, cut(err.Error()), retry.IsPermanent(err)
		o.RunAt = a.queue.clock.Now().Add(a.retryDelay(&a.queue.cfg, err))
	}
	return o
}

// interrupted reports whether a handler's context has ended for another reason than the task's
// Timeout: then what the handler returns is not a failure.
func interrupted(cause error) bool {
	return cause != nil && !errors.Is(cause, context.DeadlineExceeded)
}

// retryDelay returns the delay before the next attempt: that of the error if it has one, or
// else that of the policy, which grows from the delay before.
func (t *Task) retryDelay(cfg *Config, err error) time.Duration {
	if d, ok := retry.Delay(err); ok {
		return d
	}
	var before time.Duration
	for i, step := range slices.Backward(t.Steps) {
		if step.On == OnFailure {
			if t.Failures > 0 && i+1 < len(t.Steps) && t.Steps[i+1].On == OnDue {
				// RunAt has passed long before that step if no process ran meanwhile, and is
				// later than the step after a snooze.
				before = min(t.Steps[i+1].At.Sub(step.At), t.RunAt.Sub(step.At))
			}
			break
		}
	}
	policy := cfg.Retry
	policy.Attempts = t.Failures + 2 // the store counts the attempts
	d, _ := policy.Next(t.Failures+1, before, cfg.Random)
	return d
}
