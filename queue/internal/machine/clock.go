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
	now   int64 // the latest time of a call, before the first one that of the rows; nanoseconds since 1970
	away  span  // without a call, before the first one
	begun bool  // a call has brought a time
}

// time is the present step's.
func (c *clock) time() time.Time { return timeOf(c.now) }

// after is the end of a time that begins now.
func (c *clock) after(d time.Duration) int64 {
	if c.now > 0 && int64(d) > math.MaxInt64-c.now {
		return math.MaxInt64
	}
	return c.now + int64(d)
}

// latest is the time of a call that changes nothing.
func (c *clock) latest(now time.Time) int64 {
	if !c.begun && !now.IsZero() {
		return now.UnixNano()
	}
	return max(c.now, now.UnixNano())
}

// unix is a time in nanoseconds since 1970, 0 for none. What is too early or too
// late for that, before 1678 or after 2262, is the first or the last that is not.
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

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
