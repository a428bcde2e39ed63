package machine

import (
	"math"
	"time"
)

// clock is the time of the present step. The machine reads no clock: each call brings
// its time, and calls may pass one another, so now is the latest time that a call has
// brought. Before the first call it is the latest time in the rows. The caller of each
// method holds the lock of the machine.
type clock struct {
	now   int64 // nanoseconds since 1970
	away  span  // the time before the first call in which the store was closed
	begun bool  // a call has brought a time
}

// time returns the time of the present step.
func (c *clock) time() time.Time { return timeOf(c.now) }

// after returns the end of a time that begins now.
func (c *clock) after(d time.Duration) int64 {
	if c.now > 0 && int64(d) > math.MaxInt64-c.now {
		return math.MaxInt64
	}
	return c.now + int64(d)
}

// latest returns the time of a call that changes nothing.
func (c *clock) latest(now time.Time) int64 {
	if !c.begun && !now.IsZero() {
		return now.UnixNano()
	}
	return max(c.now, now.UnixNano())
}

// unix returns a time in nanoseconds since 1970, 0 for none. A time before 1678 or after
// 2262 becomes the first or the last that can be expressed.
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

// timeOf is the opposite of unix.
func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
