package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
)

// Tend is as [queue.Store] says.
func (m *Machine) Tend(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	switch {
	case limit < 0:
		return time.Time{}, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, limit)
	case limit == 0:
		limit = math.MaxInt
	}
	for {
		part := min(limit, partTend)
		next, left, err := m.tendPart(ctx, now, part)
		if limit -= part - left; err != nil || left > 0 || limit == 0 {
			return next, err
		}
	}
}

// partTend is how many changes Tend makes in one step.
const partTend = 100

// tendPart is a step of Tend. left is what is left of its limit; if that is 0, next
// is now.
func (m *Machine) tendPart(ctx context.Context, now time.Time, limit int) (next time.Time, left int, err error) {
	if err := m.steps.beginChange(ctx, now); err != nil {
		return time.Time{}, limit, err
	}
	at, limit := m.maintainer.maintain(limit)
	if err := errors.Join(m.journal.failed(), m.steps.end(ctx)); err != nil {
		return time.Time{}, limit, err
	}
	if at == 0 {
		return time.Time{}, limit, nil
	}
	return timeOf(at), limit, nil
}

// soonest is the earlier of two times, of which 0 is none.
func soonest(at, other int64) int64 {
	if at == 0 || other > 0 && other < at {
		return other
	}
	return at
}
