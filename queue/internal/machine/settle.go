package machine

import (
	"context"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
)

// Settle is as [queue.Store] says.
func (m *Machine) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if err := m.steps.begin(ctx, now); err != nil {
		return nil, err
	}
	answers := make([]error, len(outcomes))
	for i := range outcomes {
		answers[i] = m.attempts.settle(&outcomes[i])
		m.passes.advance()
	}
	if err := m.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

// attempts is a number of attempts, or the default for 0.
func attemptsOrDefault(n int) int {
	const usual = 3
	if n == 0 {
		return usual
	}
	return n
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
