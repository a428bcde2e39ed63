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
func (m *Machine) Tend(_ context.Context, now time.Time, limit int) (next time.Time, err error) {
	switch {
	case limit < 0:
		return time.Time{}, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, limit)
	case limit == 0:
		limit = math.MaxInt
	}
	if err := m.begin(now); err != nil {
		return time.Time{}, err
	}
	m.unblockKeys()
	for limit > 0 && m.journal.failed() == nil && m.tendTask() {
		limit--
	}
	at := int64(0)
	if limit > 0 {
		at, limit = m.tendEnds(limit)
	}
	if limit == 0 {
		at = m.now // there may be more
	} else {
		at = soonest(at, m.due.first())
		at = soonest(at, m.rates.first())
	}
	if err := errors.Join(m.journal.failed(), m.end()); err != nil {
		return time.Time{}, err
	}
	if at == 0 {
		return time.Time{}, nil
	}
	return timeOf(at), nil
}

func soonest(at int64, e *timer) int64 {
	if e == nil || at > 0 && at < e.at {
		return at
	}
	return e.at
}

// tendTask does what is due first, and reports whether anything was.
func (m *Machine) tendTask() bool {
	e := m.due.first()
	if e == nil || e.at > m.now {
		return false
	}
	t := e.t
	switch {
	case e == &t.expiry:
		m.due.stop(e)
		m.expire(t)
	case t.state == queue.Running:
		m.lose(t)
	default:
		m.dueNow(t)
	}
	return true
}

// expire ends a task whose deadline has come before it started.
func (m *Machine) expire(t *task) {
	row, err := m.row(t)
	if err != nil {
		m.journal.fail(err)
		return
	}
	row.Error = "its deadline passed before it started"
	m.change(t, &row, queue.Dead, why{on: queue.OnExpire, detail: row.Error})
}

// tendEnds forgets finished tasks that are kept no longer. It returns when the
// next one is, and what is left of the limit.
func (m *Machine) tendEnds(limit int) (next int64, left int) {
	for _, of := range m.ends.keys() {
		for limit > 0 {
			now, at := m.expired(of)
			if !now {
				next = soonestOf(next, at)
				break
			}
			limit--
			first := m.ends[of][0]
			row, err := m.read(rowFinished, first.id)
			if err != nil {
				m.journal.fail(err)
				return next, limit
			}
			m.forget(&row, why{on: queue.OnForget})
		}
	}
	return next, limit
}

func soonestOf(at, other int64) int64 {
	if at == 0 || other > 0 && other < at {
		return other
	}
	return at
}
