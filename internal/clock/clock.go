// Package clock reads the time for the queue, its stores, the server and the program, so
// that a search for it finds all of their code that depends on time. The root package,
// internal/sched and shm read the time on their fast paths and do so themselves.
package clock

import (
	"context"
	"time"
)

// Now returns the time of the system's clock, with the monotonic reading that
// [time.Time.Sub] uses.
func Now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// Steady is a clock that showed the system's time when New was called and is advanced by
// the monotonic clock since. Setting the system's clock changes neither the order nor the
// distance of its times, so it expires no lease early and keeps none alive. The zero value
// is not valid.
type Steady struct{ start time.Time }

// New returns a clock that starts at the system's time.
func New() Steady { return Steady{Now()} }

// Now returns the time, without a monotonic reading.
func (s Steady) Now() time.Time {
	return s.start.Round(0).Add(time.Since(s.start)) //nolint:forbidigo // the clock itself
}

// callTime is the key of the time that [WithTime] sets.
type callTime struct{}

// WithTime returns a context with the time at which a call takes effect. It lets tests
// of packages that talk over a network set the time of the other side.
func WithTime(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, callTime{}, at)
}

// NowIn returns the time that [WithTime] has set in ctx, and that of the clock otherwise.
func (s Steady) NowIn(ctx context.Context) time.Time {
	if at, ok := ctx.Value(callTime{}).(time.Time); ok {
		return at
	}
	return s.Now()
}
