package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Settle is as [queue.Store] says.
func (m *Machine) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if err := m.begin(ctx, now); err != nil {
		return nil, err
	}
	answers := make([]error, len(outcomes))
	for i := range outcomes {
		answers[i] = m.settle(&outcomes[i])
		m.passes.advance()
	}
	if err := m.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

func (m *Machine) settle(o *queue.Outcome) error {
	switch o.On {
	case queue.OnSuccess, queue.OnFailure, queue.OnSnooze, queue.OnGiveBack:
	default:
		return fmt.Errorf("%w: %s is no outcome", queue.ErrInvalid, o.On)
	}
	if n := len(o.Result); n > m.cfg.MaxResult {
		return tooLarge("result", n, m.cfg.MaxResult)
	}
	if n := len(o.Checkpoint); n > m.cfg.MaxCheckpoint {
		return tooLarge("checkpoint", n, m.cfg.MaxCheckpoint)
	}
	t := m.tasks.get(o.ID)
	if t == nil || t.leased() == nil || t.lease.row.Lease.Token != o.Token {
		return m.settledBefore(o)
	}
	held := t.lease
	row := &held.row
	w := why{on: o.On, by: row.Lease.Worker, token: o.Token}
	released(row)
	if o.Checkpoint != nil {
		row.Checkpoint = o.Checkpoint
	}
	if o.On != queue.OnGiveBack {
		row.Crashes = 0 // the worker has come to its end
	}
	switch o.On {
	case queue.OnSuccess:
		row.Result, row.Error = o.Result, ""
		m.transitions.change(t, row, queue.Succeeded, w)
	case queue.OnFailure:
		row.Error = shortened(o.Error)
		w.detail = row.Error
		row.Failures++
		if o.Permanent || row.Failures >= attemptsOrDefault(row.MaxAttempts) {
			m.transitions.change(t, row, queue.Dead, w)
		} else {
			m.again(t, row, held, o.RunAt, w)
		}
	default:
		if o.On == queue.OnGiveBack {
			w.detail = shortened(o.Error)
		}
		m.again(t, row, held, o.RunAt, w)
	}
	return nil
}

// again has a task that has not ended wait for its next attempt, or does what
// its worker was told meanwhile.
func (m *Machine) again(t *task, row *record.Row, held *lease, runAt time.Time, w why) {
	if t.group != nil {
		t.group.running = nil // an older one may have been retried meanwhile
		defer func() {
			if g := m.queues.of(t).groups[row.Group]; g != nil {
				m.transitions.unhold(g.first())
			}
		}()
	}
	if held.order != 0 && w.on == queue.OnGiveBack {
		m.obey(t, row, held, w.token)
		return
	}
	m.states.arm(t, row)
	if w.on == queue.OnGiveBack || w.on == queue.OnLost {
		m.transitions.change(t, row, m.transitions.pending(t, 0), w)
	} else {
		row.RunAt = runAt
		m.transitions.change(t, row, queue.Scheduled, w)
		if unix(runAt) <= m.clock.now && held.order == 0 {
			m.transitions.change(t, row, m.transitions.pending(t, 0), why{on: queue.OnDue})
		}
	}
	if held.order != 0 {
		m.obey(t, row, held, 0) // it has no lease any more
	}
}

// obey does what a worker was told to while it had the task.
func (m *Machine) obey(t *task, row *record.Row, held *lease, token queue.Token) {
	to := queue.Cancelled
	if held.order == queue.OnPause {
		to = queue.Paused
		m.states.arm(t, row)
	}
	m.transitions.change(t, row, to, why{on: held.order, by: held.by, token: token, detail: held.reason})
}

// settledBefore answers an outcome for which there is no lease: nil, if it is
// the repetition of one that was accepted.
func (m *Machine) settledBefore(o *queue.Outcome) error {
	row, err := m.any(o.ID)
	if err == nil {
		for _, step := range row.Steps {
			obeyed := o.On == queue.OnGiveBack && (step.On == queue.OnPause || step.On == queue.OnCancel)
			if o.Token != 0 && step.Token == o.Token && (step.On == o.On || obeyed) {
				return nil
			}
		}
	} else if !errors.Is(err, queue.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w: task %s", queue.ErrStale, o.ID)
}

// dueNow has a scheduled task whose time has come go on, or one that is set aside.
func (m *Machine) dueNow(t *task) {
	if t.damaged() {
		m.holds.repair(t)
	} else {
		m.transitions.revise(t, m.transitions.pending(t, 0), why{on: queue.OnDue})
	}
}

// lose ends the lease of a task whose worker has not been heard of in time.
func (m *Machine) lose(t *task) {
	held := t.lease
	row := &held.row
	w := why{on: queue.OnLost, by: row.Lease.Worker, token: row.Lease.Token}
	released(row)
	l := m.queues.of(t)
	defer func() {
		l.roomEnd = m.journal.mark()
		if m.slots.shared() {
			m.slots.roomEnd = l.roomEnd
		}
	}()
	row.Crashes++
	if row.Crashes < attemptsOrDefault(row.MaxCrashes) {
		m.again(t, row, held, time.Time{}, w)
		return
	}
	w.detail = fmt.Sprintf("lost its worker %d times in a row", row.Crashes)
	row.Error = w.detail
	m.fingerprints.add(t, row)
	m.transitions.change(t, row, queue.Dead, w)
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
