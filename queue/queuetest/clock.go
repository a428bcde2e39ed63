package queuetest

import "time"

// now is the time of the bubble that the test runs in.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself
