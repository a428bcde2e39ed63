package server

import "time"

// clock is the server's time: the wall clock at the start, advanced by the monotonic
// clock, so that setting the system's clock does not expire leases.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} } //nolint:forbidigo // the clock itself

func (c clock) now() time.Time {
	return c.start.Round(0).Add(time.Since(c.start)) //nolint:forbidigo // the clock itself
}

// after returns the deadline of a connection, d from now.
func after(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // the clock that net.Conn uses
}
