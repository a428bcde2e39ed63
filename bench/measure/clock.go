package measure

import "time"

// Now reads the clock. It is the only place of the bench that does, so that a
// reader can see what every figure rests on: the monotonic part of time.Now.
func Now() time.Time {
	return time.Now()
}

// Since is the time that has passed since start.
func Since(start time.Time) time.Duration { return Now().Sub(start) }
