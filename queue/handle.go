package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/retry"
)

// Job is a task while a handler works on it.
type Job[T any] struct {
	Task      // as it was when it was claimed
	Args T    // the payload
	run  *run // what it reports
}

// Report tells how far the work is, and is cheap: it is sent with the next sign
// of life. It may be called from any goroutine.
func (j *Job[T]) Report(p Progress) {
	j.run.mu.Lock()
	defer j.run.mu.Unlock()
	j.run.progress = p
}

// Save keeps a checkpoint, which the next attempt finds in its Task: it is sent
// with the next sign of life, or with the outcome. The bytes are copied. It may
// be called from any goroutine.
func (j *Job[T]) Save(checkpoint []byte) {
	j.run.mu.Lock()
	defer j.run.mu.Unlock()
	j.run.checkpoint = append([]byte{}, checkpoint...)
	j.run.saved++
}

// Return keeps a value as the result of the task, in JSON, if it succeeds.
func (j *Job[T]) Return(value any) error {
	result, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("result of task %s: %w", j.ID, err)
	}
	j.run.mu.Lock()
	defer j.run.mu.Unlock()
	j.run.result = result
	return nil
}

// handler works on a task of any type.
type handler func(ctx context.Context, r *run) error

// Handle has tasks of a kind, whose payloads are T in JSON, done by fn in the
// processes that Run this queue. What fn returns decides:
//
//   - nil: the task has succeeded.
//   - an error of [retry.Permanent]: it is dead.
//   - an error of [retry.After]: it has failed, and is tried again after that time.
//   - [Snooze]: it is tried again after a time, and has not failed.
//   - any other error, or a panic: it has failed, and is tried again later until
//     it has failed MaxAttempts times.
//
// When the context of fn ends it should return soon. [context.Cause] says why:
// [ErrPaused], [ErrCancelled], [ErrStale], [ErrStopping], or context.DeadlineExceeded
// after the task's Timeout. An error that fn returns then counts as a failure only
// in the last case; nil is a success in any.
//
// A payload that is no T is a permanent failure. Handle panics if the kind has
// a handler, or if Run has been called.
func Handle[T any](q *Queue, kind string, fn func(context.Context, *Job[T]) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handlers[kind] != nil || q.ran || kind == "" {
		panic(fmt.Sprintf("queue: Handle(%q): a kind has one handler, given before Run", kind))
	}
	q.handlers[kind] = func(ctx context.Context, r *run) error {
		j := &Job[T]{Task: r.task, run: r}
		if err := json.Unmarshal(r.task.Payload, &j.Args); err != nil && len(r.task.Payload) > 0 {
			return retry.Permanent(fmt.Errorf("payload of a task of kind %q: %w", kind, err))
		}
		return fn(ctx, j)
	}
}

// What ends a handler's context, besides its task's Timeout and [ErrStale].
var (
	// ErrPaused: somebody has paused the task.
	ErrPaused = errors.New("queue: somebody has paused the task")
	// ErrCancelled: somebody has cancelled the task.
	ErrCancelled = errors.New("queue: somebody has cancelled the task")
	// ErrStopping: Run is to return, and has waited as long as [Config.Grace].
	ErrStopping = errors.New("queue: this worker is stopping")
)

// snooze is an error that is no failure.
type snooze struct{ delay time.Duration }

func (s snooze) Error() string { return fmt.Sprintf("queue: again in %s", s.delay) }

// Snooze returns what a handler returns to be called again after a delay,
// without having failed.
func Snooze(delay time.Duration) error { return snooze{delay} }

// run is a task that this process has the lease of.
type run struct {
	task   Task
	cancel context.CancelCauseFunc
	lapse  *time.Timer // ends the handler with its lease

	mu         sync.Mutex
	progress   Progress
	checkpoint []byte // to be sent
	saved      int    // checkpoints so far
	result     []byte
}

// beat returns what there is to tell of the task, and which checkpoint that has.
// It is kept until it has been heard: the outcome may overtake it.
func (r *run) beat(lease time.Duration) (b Beat, saved int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b = Beat{ID: r.task.ID, Token: r.task.Lease.Token, Lease: lease, Progress: r.progress, Checkpoint: r.checkpoint}
	return b, r.saved
}

// heard forgets the checkpoint that the store has heard of.
func (r *run) heard(saved int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved == saved {
		r.checkpoint = nil
	}
}

// errExited is the error of a handler that ended its goroutine.
var errExited = errors.New("the handler called runtime.Goexit")

// protect calls a handler, and makes an error of a panic.
func protect(ctx context.Context, h handler, r *run) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
		}
	}()
	return h(ctx, r)
}

// outcome makes an outcome of what a handler returned, whose context is ctx.
func (q *Queue) outcome(ctx context.Context, r *run, err error) Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := Outcome{ID: r.task.ID, Token: r.task.Lease.Token, Checkpoint: r.checkpoint}
	var again snooze
	switch cause := context.Cause(ctx); {
	case err == nil:
		o.On, o.Result = OnSuccess, r.result
	case slices.Contains([]error{ErrPaused, ErrCancelled, ErrStale, ErrStopping}, cause):
		o.On = OnGiveBack
	case errors.Is(cause, ErrTooLarge):
		o.On, o.Error, o.Permanent, o.Checkpoint = OnFailure, cause.Error(), true, nil
	case errors.As(err, &again):
		o.On, o.RunAt = OnSnooze, q.clock.now().Add(again.delay)
	default:
		o.On, o.Error, o.Permanent = OnFailure, err.Error(), retry.IsPermanent(err)
		o.RunAt = q.clock.now().Add(q.delay(&r.task, err))
	}
	return o
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
