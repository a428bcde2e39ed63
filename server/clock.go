package server

import "time"

// clock is the server's time: that of the wall when it began, moved on by the
// monotonic clock, so that setting the clock ends no lease.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} } //nolint:forbidigo // the clock itself

func (c clock) now() time.Time {
	return c.start.Round(0).Add(time.Since(c.start)) //nolint:forbidigo // the clock itself
}

// after is a deadline for a connection.
func after(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // connections go by this clock
}
