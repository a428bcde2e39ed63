// Package clock reads the time for the queue, its stores, the server and the program, so
// that a search for it finds all of their code that depends on time. The root package,
// internal/sched and shm read the time on their fast paths and do so themselves.
package clock

import (
	"context"
	"sync"
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

// Of returns the clock of a store that has one, which was read when the store was opened, or a new
// one. Clocks that were read before and after the system's clock was set differ for ever, so all
// that call one store in a process use the same.
func Of(store any) Steady {
	if s, ok := store.(interface{ Clock() Steady }); ok {
		return s.Clock()
	}
	return New()
}

// callTime is the key of the time that [WithTime] sets.
type callTime struct{}

// WithTime returns a context with the time at which a call takes effect. It lets tests
// of packages that talk over a network set the time of the other side.
func WithTime(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, callTime{}, at)
}

// NowIn returns the time that [WithTime] has set in ctx, and now() otherwise.
func NowIn(ctx context.Context, now func() time.Time) time.Time {
	if at, ok := ctx.Value(callTime{}).(time.Time); ok {
		return at
	}
	return now()
}

// Remote is the clock of another machine, which is read over a network from time to time and
// advanced by the monotonic clock of this one meanwhile. Its times grow: if the other clock is
// set, Remote approaches it slowly, so that a lease or a delay that lasts for minutes hardly
// changes its length. If this machine was suspended meanwhile, Remote catches up at once. The zero
// value is not valid before the first call of Read. It is safe for concurrent use.
type Remote struct {
	mu    sync.Mutex
	at    time.Time     // by the clock of this machine, with a monotonic reading,
	shows time.Time     // when the remote one showed this
	slept time.Duration // what suspended returned then
}

// remoteSlew is the largest correction, as a part of the time since the last reading: 1/200.
const remoteSlew = 200

// suspendedMin is more than the two readings of suspended are apart: shorter times are noise.
const suspendedMin = time.Second

// Read records that the other clock showed a time, and that the answer with it arrived at a
// time after the question had been sent at another one.
func (r *Remote) Read(shown, sent, received time.Time) { r.read(shown, sent, received, suspended()) }

func (r *Remote) read(shown, sent, received time.Time, slept time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	missed := slept - r.slept // by the monotonic clock
	r.slept = slept
	way := received.Sub(sent) / 2 // the error is at most that
	shown = shown.Round(0).Add(way)
	if r.at.IsZero() {
		r.at, r.shows = received, shown
		return
	}
	passed := received.Sub(r.at)
	if passed <= 0 {
		return
	}
	is := r.shows.Add(passed)
	if behind := shown.Sub(is); missed > suspendedMin && behind > way {
		is = is.Add(min(missed, behind))
	}
	if off := shown.Sub(is); off.Abs() > way {
		most := passed / remoteSlew
		is = is.Add(max(-most, min(most, off)))
	}
	r.at, r.shows = received, is
}

// Now returns the time by the other clock, without a monotonic reading.
func (r *Remote) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shows.Add(time.Since(r.at)) //nolint:forbidigo // the clock itself
}
