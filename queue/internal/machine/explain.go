package machine

import (
	"context"
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
	at := max(m.now, now.UnixNano())
	m.unblockKeys()
	row, err := m.any(id)
	if err != nil {
		return nil, err
	}
	t := m.tasks[id]
	if t == nil {
		return nil, nil
	}
	switch t.state {
	case queue.Scheduled:
		return []queue.Reason{{
			Reason: stint.Reason{Code: queue.CodeScheduled}, Until: timeOf(t.due.at), Failures: row.Failures,
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
	l := t.line
	for _, h := range m.holds(t, row) {
		r := queue.Reason{Reason: stint.Reason{Code: stint.Code(h.Code)}, What: h.What, State: h.State}
		switch h.Code {
		case queue.HoldQueuePaused:
			p := l.settings.Paused
			r.Since, r.By = p.Since, said(p.By, p.Reason)
		case queue.HoldKey:
			r.Key, r.Limit, r.Running = t.key, l.settings.PerKey, l.order.Running(t.key)
			r.Holders = m.holders(l, t.key)
		case queue.HoldKeyRate:
			if l.keys[t.key].due.at <= at {
				continue
			}
			r.Key, r.Until = t.key, timeOf(l.keys[t.key].due.at)
		default:
		}
		all = append(all, r)
	}
	if r, ok := noWorker(l, row.Kind, at); ok {
		all = append(all, r)
	}
	if t.state == queue.Waiting {
		all = append(all, m.turn(t, at)...)
	}
	return all
}

// holders are some of the tasks that run of a queue, and of a key unless it is
// empty.
func (m *Machine) holders(l *line, key string) (ids []queue.ID) {
	const most = 10
	for _, e := range m.due {
		if t := e.t; t.state == queue.Running && t.line == l && (key == "" || t.key == key) {
			if ids = append(ids, t.id); len(ids) == most {
				break
			}
		}
	}
	return ids
}

// noWorker says that no live worker handles a kind, if that is so.
func noWorker(l *line, kind string, at int64) (r queue.Reason, none bool) {
	seen, ever := l.seen[kind]
	if ever && at-seen.At.UnixNano() < int64(workerLives) {
		return r, false
	}
	return queue.Reason{Reason: stint.Reason{Code: queue.CodeNoWorker}, What: kind, LastSeen: seen}, true
}

// turn is what the order says of a task that is eligible.
func (m *Machine) turn(t *task, at int64) (all []queue.Reason) {
	l := t.line
	why := l.order.Why(&t.place, l.running)
	if why.Full {
		all = append(all, queue.Reason{
			Reason:  stint.Reason{Code: stint.CodeMax, Limit: l.settings.Max, Running: l.running},
			Holders: m.holders(l, ""),
		})
	}
	if why.AtCap {
		all = append(all, queue.Reason{Reason: stint.Reason{Code: stint.CodeCap, Limit: why.Cap, Running: l.running}})
	}
	if l.rate.limited() {
		if from := l.rate.from(l.arrival); from > at {
			all = append(all, queue.Reason{Reason: stint.Reason{Code: stint.CodeRate}, Until: timeOf(from)})
		}
	}
	return append(all, queue.Reason{Reason: stint.Reason{Code: stint.CodeBehind, Ahead: why.Ahead, Guard: why.GuardIn}})
}
