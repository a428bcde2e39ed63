// Package limiter measures the token bucket: what it costs, and how many
// tokens it admits.
package limiter

import (
	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours  = "stint"
	xtime = "x/time/rate"
	uber  = "uber-go/ratelimit"
	juju  = "juju/ratelimit"
)

// callers is how many goroutines a busy limiter has.
const callers = 64

// Cases are the rows of this suite.
func Cases() []measure.Case {
	return []measure.Case{
		try(1, 0.6), try(callers, 0.8), neverAbove(),
		keyed(100), keyed(100_000), waiting(), copying(), rateChange(),
	}
}

func bucket(rate float64, burst int64) stint.Limiter {
	return stint.NewLimiter(rate, stint.LimiterConfig{Capacity: burst})
}
