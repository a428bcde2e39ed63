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
//   - the error of fn, as it is, when that is [Permanent];
//   - an error that wraps that of fn when there are no attempts left;
//   - [context.Cause] of ctx, when ctx has ended, together with the last error
//     of fn: [errors.Is] finds both. It interrupts the wait, but not fn;
//   - an error that wraps [ErrPolicy], without a call of fn, when the policy is
//     invalid.
//
// fn is called in the caller's goroutine, and its context is ctx, which also
// knows the number of the attempt (see [Attempt]). If fn returns an error that
// carries a delay (see [After]), that delay replaces the policy's; it is not limited
// by Max, because an earlier attempt would be refused. A panic of fn passes
// through. Do starts no goroutine and leaves no timer behind.
//
// [Config.Do] does the same, and calls functions that decide on failures or log them.
func Do(ctx context.Context, policy Policy, fn func(context.Context) error) error {
	return Config{Policy: policy}.Do(ctx, fn)
}

// DoValue is [Do] for a function that also returns a value. With an error the
// value is zero.
func DoValue[T any](ctx context.Context, policy Policy, fn func(context.Context) (T, error)) (T, error) {
	var value, none T
	err := Do(ctx, policy, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// Config is a policy and functions that are called after failures. The zero value is
// the zero [Policy] alone. The functions are not part of Policy so that a Policy is a
// value that can be compared and stored.
type Config struct {
	// Policy says how often and after which delays.
	Policy Policy
	// If reports whether to try again after an error. If it reports false, Do returns
	// that error unchanged. It is not called for errors that end the attempts anyway.
	// A nil If tries again after all errors.
	If func(err error) bool
	// OnFailure is called after each attempt that failed, before the wait; for a log
	// line, say. It is called in the goroutine of Do. Nil is not called.
	OnFailure func(Failure)
}

// Do is [Do] with the policy and the functions of c.
func (c Config) Do(ctx context.Context, fn func(context.Context) error) error {
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := runner{cfg: c}
	for {
		r.attempt++
		err := fn(context.WithValue(ctx, attemptKey{}, r.attempt))
		if err == nil {
			return nil
		}
		if err := r.failed(ctx, err); err != nil {
			return err
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

// Failure is an attempt that failed.
type Failure struct {
	// Attempt is its number, from 1.
	Attempt int
	// Err is the error that the function returned.
	Err error
	// Delay is the time until the next attempt.
	Delay time.Duration
	// Final says that there is no next attempt. It is false also if the context ends later,
	// during Delay.
	Final bool
}

// runner is the state of one Do.
type runner struct {
	cfg      Config
	attempt  int           // number of the attempt that runs, from 1
	previous time.Duration // delay that the policy gave before it
}

// failed decides what follows an attempt that returned err. It returns nil after
// the wait for the next attempt, or the error that Do ends with.
func (r *runner) failed(ctx context.Context, err error) error {
	delay, end := r.decide(ctx, err)
	if r.cfg.OnFailure != nil {
		r.cfg.OnFailure(Failure{Attempt: r.attempt, Err: err, Delay: delay, Final: end != nil})
	}
	if end != nil {
		return end
	}
	if !sleep(ctx, delay) {
		return r.stopped(ctx, err)
	}
	return nil
}

// decide returns the delay before the next attempt, or the error that Do ends
// with.
func (r *runner) decide(ctx context.Context, err error) (time.Duration, error) {
	if IsPermanent(err) {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, r.stopped(ctx, err)
	}
	delay, ok := r.cfg.Policy.Next(r.attempt, r.previous, rand.Uint64)
	if !ok {
		return 0, fmt.Errorf("retry: gave up after attempt %d: %w", r.attempt, err)
	}
	if r.cfg.If != nil && !r.cfg.If(err) {
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
