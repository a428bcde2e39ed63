package queue

import "time"

// clock is the time that a store is given: that of the wall when the process
// began, moved on by the monotonic clock. So a clock that is set forth or back
// while the process runs ends no lease early, and keeps none alive.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} } //nolint:forbidigo // the clock itself

func (c clock) now() time.Time {
	return c.start.Round(0).Add(time.Since(c.start)) //nolint:forbidigo // the clock itself
}

// wall is the time that schedules go by. People mean the clock on the wall, also
// after it has been put right or the machine was asleep; and a schedule's cursor
// sees to it that no tick comes twice, whatever a clock does.
func wall() time.Time { return time.Now().Round(0) } //nolint:forbidigo // the clock itself
