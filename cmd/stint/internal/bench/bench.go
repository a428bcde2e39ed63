// Package bench measures the scheduler, the limiter and stint run on this machine in a
// few seconds. It gives a first impression and compares machines; comparisons with other
// software need more care, and are in the bench directory of the source.
package bench

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Row is one measurement.
type Row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Note  string  `json:"note,omitempty"`
}

// Case is one thing to measure.
type Case struct {
	name    string
	measure func(ctx context.Context, each time.Duration) ([]Row, error)
}

// Name returns what the case measures.
func (c Case) Name() string { return c.name }

// Measure measures for about the given time and returns the results.
func (c Case) Measure(ctx context.Context, each time.Duration) ([]Row, error) {
	return c.measure(ctx, each)
}

// Cases lists all measurements.
func Cases() []Case {
	return []Case{
		{"scheduler, free slot", freeSlot},
		{"scheduler, contended slot", contendedSlot},
		{"scheduler, tasks", tasks},
		{"limiter, try", limiterTry},
		{"limiter, accuracy", limiterAccuracy},
		{"processes", processes},
	}
}

// rounds is how often a loop is measured. The fastest round counts, since every
// disturbance makes a loop slower.
const rounds = 5

// perOp runs loop for about the given time in all, and returns the time of one of its
// operations in nanoseconds. loop runs n operations.
func perOp(each time.Duration, loop func(n int)) float64 {
	n := 1
	for {
		took := timed(func() { loop(n) })
		if took >= each/rounds/4 {
			n = max(int(float64(n)*float64(each)/rounds/float64(took)), 1)
			break
		}
		n *= 4
	}
	best := time.Duration(1<<63 - 1)
	for range rounds {
		best = min(best, timed(func() { loop(n) }))
	}
	return float64(best) / float64(n)
}

// timed returns how long fn takes.
func timed(fn func()) time.Duration {
	begin := clock.Now()
	fn()
	return clock.Now().Sub(begin)
}
