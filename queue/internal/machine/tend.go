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
	if err := m.beginChange(ctx, now); err != nil {
		return time.Time{}, limit, err
	}
	m.keyRates.unblock()
	m.total.lapse()
	for limit > 0 && m.journal.failed() == nil && m.tendTask() {
		limit--
	}
	for limit > 0 && m.uniqueNames.expire() {
		limit--
	}
	at := int64(0)
	if limit > 0 {
		at, limit = m.tendEnds(limit)
	}
	if limit == 0 {
		at = m.clock.now // there may be more
	} else {
		for _, h := range []*heap[*task]{&m.states.due, &m.states.leases, &m.states.deadlines} {
			if e, ok := h.first(); ok {
				at = soonest(at, e.rank)
			}
		}
		if e, ok := m.uniqueNames.ends.first(); ok {
			at = soonest(at, e.rank)
		}
		if e, ok := m.keyRates.byTime.first(); ok {
			at = soonest(at, e.rank)
		}
		if lapses := m.total.lapse(); lapses > 0 {
			at = soonest(at, lapses)
		}
	}
	if err := errors.Join(m.journal.failed(), m.end(ctx)); err != nil {
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

// tendTask does what is due first, and reports whether anything was.
func (m *Machine) tendTask() bool {
	at, do, due := m.clock.now, (func(*task))(nil), (*task)(nil)
	for _, of := range []struct {
		heap *heap[*task]
		do   func(*task)
	}{{&m.states.due, m.dueNow}, {&m.states.leases, m.lose}, {&m.states.deadlines, m.transitions.expire}} {
		if e, ok := of.heap.first(); ok && (e.rank < at || e.rank == at && due == nil) {
			at, do, due = e.rank, of.do, e.of
		}
	}
	if due == nil {
		return false
	}
	do(due)
	m.passes.advance()
	return true
}
