package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Do calls fn until it returns nil, and waits between the calls as policy says.
// It returns
//
//   - nil when fn has;
//   - the error of fn, as it is, when that is [Permanent] or [If] rejects it;
//   - an error that wraps that of fn when there are no attempts left;
//   - [context.Cause] of ctx, when ctx has ended, together with the last error
//     of fn: [errors.Is] finds both. It interrupts the wait, but not fn;
//   - an error that wraps [ErrPolicy], without a call of fn, when the policy makes
//     no sense.
//
// fn is called in the caller's goroutine, and its context is ctx, which also
// knows the number of the attempt (see [Attempt]). If fn returns an error that
// carries a delay (see [After]), that delay replaces the policy's; it is not cut
// at Max, because coming sooner than asked would be in vain. A panic of fn passes
// through. Do starts no goroutine and leaves no timer behind.
func Do(ctx context.Context, policy Policy, fn func(context.Context) error, options ...Option) error {
	_, err := DoValue(ctx, policy, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}, options...)
	return err
}

// DoValue is [Do] for a function that also returns a value. With an error the
// value is zero.
func DoValue[T any](
	ctx context.Context, policy Policy, fn func(context.Context) (T, error), options ...Option,
) (T, error) {
	var none T
	if err := policy.Validate(); err != nil {
		return none, err
	}
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	r := runner{policy: policy}
	for _, option := range options {
		option(&r)
	}
	for {
		r.attempt++
		v, err := fn(context.WithValue(ctx, attemptKey{}, r.attempt))
		if err == nil {
			return v, nil
		}
		if err := r.failed(ctx, err); err != nil {
			return none, err
		}
	}
}

// Attempt returns the number of the attempt that ctx belongs to, from 1; or 0
// outside of a function that [Do] calls. Where one Do runs inside another, it is
// the inner one's.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}

type attemptKey struct{}

// Option is what Do takes besides the policy: functions, which are kept out of
// [Policy] so that it stays a value that can be compared and stored.
type Option func(*runner)

// If has Do try again only after errors for which retriable returns true. It is
// not asked about errors that end the attempts anyway.
func If(retriable func(err error) bool) Option {
	return func(r *runner) { r.retriable = retriable }
}

// OnFailure has Do call fn after each attempt that failed, before it waits; for
// a log line, say. It is called in the goroutine of Do.
func OnFailure(fn func(Failure)) Option {
	return func(r *runner) { r.onFailure = fn }
}

// Failure is an attempt that failed.
type Failure struct {
	// Attempt is its number, from 1.
	Attempt int
	// Err is the error that the function returned.
	Err error
	// Delay is the time until the next attempt.
	Delay time.Duration
	// Final says that there is no next attempt.
	Final bool
}

// runner is the state of one Do.
type runner struct {
	policy    Policy
	retriable func(error) bool
	onFailure func(Failure)

	attempt  int           // number of the attempt that runs, from 1
	previous time.Duration // what the policy gave before it
}

// failed decides what follows an attempt that returned err. It returns nil after
// the wait for the next attempt, or the error that Do ends with.
func (r *runner) failed(ctx context.Context, err error) error {
	delay, end := r.judge(ctx, err)
	if r.onFailure != nil {
		r.onFailure(Failure{Attempt: r.attempt, Err: err, Delay: delay, Final: end != nil})
	}
	if end != nil {
		return end
	}
	if !sleep(ctx, delay) {
		return r.stopped(ctx, err)
	}
	return nil
}

// judge returns the delay before the next attempt, or the error that Do ends
// with.
func (r *runner) judge(ctx context.Context, err error) (time.Duration, error) {
	if IsPermanent(err) {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, r.stopped(ctx, err)
	}
	delay, ok := r.policy.Next(r.attempt, r.previous, rand.Uint64)
	if !ok {
		return 0, fmt.Errorf("retry: gave up after attempt %d: %w", r.attempt, err)
	}
	if r.retriable != nil && !r.retriable(err) {
		return 0, err
	}
	r.previous = delay
	if carried, ok := Delay(err); ok {
		delay = carried
	}
	return delay, nil
}

// stopped joins the cause of ctx with the last error of the function, which
// often is that cause already.
func (r *runner) stopped(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	if errors.Is(last, cause) {
		return last
	}
	return fmt.Errorf("retry: stopped after attempt %d: %w; it failed with: %w", r.attempt, cause, last)
}

// sleep reports true after d, or false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil // if both are ready, the end of ctx counts
}
