package machine

import (
	"math"
	"time"
)

// clock is the time of the present step. The machine reads no system clock: each call
// passes its time as an argument. Calls may take the lock in another order than they
// read the time, so now is the latest time of all calls so far. Before the first call
// it is the latest time in the rows. The caller of each method holds the lock of the
// machine.
type clock struct {
	now   int64 // nanoseconds since 1970
	away  span  // from the latest time in the rows to the first call: the store was closed
	begun bool  // a call has passed a time
}

// time returns the time of the present step.
func (c *clock) time() time.Time { return timeOf(c.now) }

// after returns the time d from now, or the last time that can be expressed.
func (c *clock) after(d time.Duration) int64 {
	if c.now > 0 && int64(d) > math.MaxInt64-c.now {
		return math.MaxInt64
	}
	return c.now + int64(d)
}

// latest returns the time of a call that reads at time now. It does not move the clock.
func (c *clock) latest(now time.Time) int64 {
	if !c.begun && !now.IsZero() {
		return now.UnixNano()
	}
	return max(c.now, now.UnixNano())
}

// unix returns a time in nanoseconds since 1970, or 0 for the zero time. A time before
// 1678 or after 2262 becomes the first or the last time that 64 bits can express.
func unix(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}

// timeOf converts nanoseconds since 1970 to a time in UTC. It is the inverse of unix,
// except for the zero time.
func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
