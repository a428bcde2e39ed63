package machine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Explain is as [queue.Store] says.
func (m *Machine) Explain(_ context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, queue.ErrClosed
	}
	at := m.clock.latest(now)
	m.keyRates.unblock()
	t := m.tasks.get(id)
	if t == nil {
		return nil, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	row, err := m.rows.row(t)
	if err != nil && !t.state.Finished() {
		return []queue.Reason{damagedReason(err)}, nil
	}
	switch t.state {
	case queue.Scheduled:
		return []queue.Reason{{
			Reason: stint.Reason{Code: queue.CodeScheduled}, Until: timeOf(t.at), Failures: row.Failures,
		}}, nil
	case queue.Paused:
		last := row.Steps[len(row.Steps)-1]
		return []queue.Reason{{
			Reason: stint.Reason{Code: queue.CodeTaskPaused, Since: last.At, By: said(last.By, last.Detail)},
		}}, nil
	case queue.Held, queue.Waiting:
		return m.reasons(t, &row, at), nil
	default:
		return nil, nil
	}
}

// said is who said something and why, in one text.
func said(by, why string) string {
	switch {
	case by == "":
		return why
	case why == "":
		return by
	default:
		return by + ": " + why
	}
}

// reasons are why a task that is due has not started.
func (m *Machine) reasons(t *task, row *record.Row, at int64) (all []queue.Reason) {
	l := m.queues.of(t)
	for _, h := range m.holdsOf(t, row) {
		r := queue.Reason{Reason: stint.Reason{Code: stint.Code(h.Code)}, What: h.What, State: h.State}
		switch h.Code {
		case queue.HoldQueuePaused:
			p := l.settings.Paused
			r.Since, r.By = p.Since, said(p.By, p.Reason)
			r.SetBy.Default = m.settings.byName[l.name].Paused == nil
		case queue.HoldKey:
			r.Key, r.Limit, r.Running = row.Key, l.order.LimitOf(row.Key), l.order.Running(row.Key)
			r.SetBy = m.settings.originOf(l, row.Key, queue.FieldMax, queue.FieldPerKey)
			r.Holders = m.holders(func(t *task) bool { return t.line == l.no && t.lease.row.Key == row.Key })
		case queue.HoldKeyTotal:
			r = m.atKeyTotal(r, row.Key)
		case queue.HoldSuspect:
			r.Holders = m.runningSuspects(l)
		case queue.HoldKeyRate:
			until := l.rateOf(row.Key)
			if until <= at {
				continue
			}
			r.Key, r.Until = row.Key, timeOf(until)
			r.SetBy = m.settings.originOf(l, row.Key, queue.FieldRate, queue.FieldKeyRate)
		default:
		}
		all = append(all, r)
	}
	if r, ok := m.workerSet.missing(row, at); ok {
		all = append(all, r)
	}
	if t.state == queue.Waiting {
		all = append(all, m.turn(t, at)...)
	}
	return all
}

// atKeyTotal completes the reason of a task whose key is at its limit in all queues
// together.
func (m *Machine) atKeyTotal(r queue.Reason, key string) queue.Reason {
	r.Key, r.Limit, r.Running = key, m.keyTotals.limitOf(key), m.keyTotals.keys[key].running
	r.Queues = busiest(m.runningOf(key))
	r.Holders = m.holders(func(t *task) bool { return t.lease.row.Key == key })
	layers := m.settings.byName[""].Keys[key]
	_, from, own := layers.Value(queue.FieldTotal)
	if r.SetBy = from; !own {
		r.SetBy = m.settings.totals.From[queue.FieldTotalPerKey]
	}
	return r
}

// holders are some of the tasks that run, of those that count.
func (m *Machine) holders(count func(*task) bool) (ids []queue.ID) {
	const most = 10
	for _, e := range m.states.leases.all {
		if count(e.of) {
			if ids = append(ids, e.of.id); len(ids) == most {
				break
			}
		}
	}
	return ids
}

// turn is what the order says of a task that is eligible.
func (m *Machine) turn(t *task, at int64) (all []queue.Reason) {
	l := m.queues.of(t)
	why := l.order.Why(&t.place, l.running)
	if why.Full {
		all = append(all, queue.Reason{
			Reason:  stint.Reason{Code: stint.CodeMax, Limit: l.settings.Max, Running: l.running},
			Holders: m.holders(func(t *task) bool { return t.line == l.no }),
			SetBy:   l.inForce.From[queue.FieldMax],
		})
	}
	if !m.total.mayStart(l) {
		all = append(all, queue.Reason{
			Reason:  stint.Reason{Code: queue.CodeTotal, Limit: m.total.limit, Running: m.total.running},
			Queues:  busiest(m.running()),
			Holders: m.holders(func(*task) bool { return true }),
			SetBy:   m.settings.totals.From[queue.FieldTotal],
		})
	}
	if why.AtCap {
		all = append(all, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeCap, Limit: why.Cap, Running: l.running},
			SetBy:  l.inForce.From[queue.FieldCaps],
		})
	}
	if l.limits.rate.limited() {
		if from := l.limits.rate.from(l.arrival); from > at {
			all = append(all, queue.Reason{
				Reason: stint.Reason{Code: stint.CodeRate}, Until: timeOf(from), SetBy: l.inForce.From[queue.FieldRate],
			})
		}
	}
	return append(all, queue.Reason{Reason: stint.Reason{Code: stint.CodeBehind, Ahead: why.Ahead, Guard: why.GuardIn}})
}

// busiest are the queues, at most ten, of which most tasks run that count.
func busiest(running map[string]int) map[string]int {
	const most = 10
	if len(running) <= most {
		return running
	}
	names := slices.SortedFunc(maps.Keys(running), func(a, b string) int {
		return cmp.Or(cmp.Compare(running[b], running[a]), cmp.Compare(a, b))
	})
	top := make(map[string]int, most)
	for _, name := range names[:most] {
		top[name] = running[name]
	}
	return top
}

// running counts what runs, by queue.
func (m *Machine) running() map[string]int {
	running := make(map[string]int)
	for _, l := range m.queues.byName {
		if l.running > 0 {
			running[l.name] = l.running
		}
	}
	return running
}

// runningOf counts what runs of a key, by queue.
func (m *Machine) runningOf(key string) map[string]int {
	running := make(map[string]int)
	for _, l := range m.queues.byName {
		if n := l.order.Running(key); n > 0 {
			running[l.name] = n
		}
	}
	return running
}
