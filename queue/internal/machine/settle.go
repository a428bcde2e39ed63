package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Settle is as [queue.Store] says.
func (m *Machine) Settle(_ context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if err := m.begin(now); err != nil {
		return nil, err
	}
	answers := make([]error, len(outcomes))
	for i := range outcomes {
		answers[i] = m.settle(&outcomes[i])
	}
	if err := m.end(); err != nil {
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
	t := m.tasks[o.ID]
	if t == nil || t.leased() == nil || t.lease.row.Lease.Token != o.Token {
		return m.settledBefore(o)
	}
	held := t.lease
	row := &held.row
	w := why{on: o.On, by: row.Lease.Worker, token: o.Token}
	row.Lease.Until, row.Order = time.Time{}, 0
	if o.Checkpoint != nil {
		row.Checkpoint = o.Checkpoint
	}
	if o.On != queue.OnGiveBack {
		row.Crashes = 0 // the worker has come to its end
	}
	switch o.On {
	case queue.OnSuccess:
		row.Result, row.Error = o.Result, ""
		m.change(t, row, queue.Succeeded, w)
	case queue.OnFailure:
		row.Error = shortened(o.Error)
		w.detail = row.Error
		row.Failures++
		if o.Permanent || row.Failures >= attempts(row.MaxAttempts) {
			m.change(t, row, queue.Dead, w)
		} else {
			m.again(t, row, held, o.RunAt, w)
		}
	default:
		m.again(t, row, held, o.RunAt, w)
	}
	return nil
}

// again has a task that has not ended wait for its next attempt, or does what
// its worker was told meanwhile.
func (m *Machine) again(t *task, row *record.Row, held *lease, runAt time.Time, w why) {
	if t.group != nil {
		m.regroup(t)
		defer func() {
			if g := t.line.groups[row.Group]; g != nil {
				m.unhold(g.first())
			}
		}()
	}
	if held.order != 0 && w.on == queue.OnGiveBack {
		m.obey(t, row, held, w.token)
		return
	}
	m.arm(t, row)
	if w.on == queue.OnGiveBack || w.on == queue.OnLost {
		m.change(t, row, m.pending(t, 0), w)
	} else {
		row.RunAt = runAt
		t.due.at = unix(runAt)
		m.change(t, row, queue.Scheduled, w)
		if t.due.at <= m.now && held.order == 0 {
			m.change(t, row, m.pending(t, 0), why{on: queue.OnDue})
		}
	}
	if held.order != 0 {
		m.obey(t, row, held, 0) // it has no lease any more
	}
}

// arm has a task die at its deadline if it has not started again.
func (m *Machine) arm(t *task, row *record.Row) {
	if !row.Deadline.IsZero() {
		m.due.set(&t.expiry, unix(row.Deadline))
	}
}

// obey does what a worker was told to while it had the task.
func (m *Machine) obey(t *task, row *record.Row, held *lease, token queue.Token) {
	to := queue.Cancelled
	if held.order == queue.OnPause {
		to = queue.Paused
		m.arm(t, row)
	}
	m.change(t, row, to, why{on: held.order, by: held.by, token: token, detail: held.reason})
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

// any reads the row of a task, finished or not. Errors: ErrNotFound.
func (m *Machine) any(id queue.ID) (record.Row, error) {
	if t := m.tasks[id]; t != nil {
		return m.row(t)
	}
	return m.read(rowFinished, id)
}

// dueNow has a scheduled task whose time has come go on.
func (m *Machine) dueNow(t *task) { m.revise(t, m.pending(t, 0), why{on: queue.OnDue}) }

// lose ends the lease of a task whose worker has not been heard of in time.
func (m *Machine) lose(t *task) {
	held := t.lease
	row := &held.row
	w := why{on: queue.OnLost, by: row.Lease.Worker, token: row.Lease.Token}
	row.Lease.Until, row.Order = time.Time{}, 0
	row.Crashes++
	if row.Crashes < attempts(row.MaxCrashes) {
		m.again(t, row, held, time.Time{}, w)
		return
	}
	w.detail = fmt.Sprintf("lost its worker %d times in a row", row.Crashes)
	row.Error = w.detail
	m.poisoned(row)
	m.change(t, row, queue.Dead, w)
}

// poisoned remembers what a task does that has crashed its workers.
func (m *Machine) poisoned(row *record.Row) {
	f := fingerprintOf(&row.Spec)
	m.poison[f] = append(m.poison[f], row.ID)
	m.journal.set(rowPoison+string(f[:])+string(row.ID[:]), []byte{1})
}

// cleared forgets that, when the task is tried again or forgotten itself.
func (m *Machine) cleared(row *record.Row) {
	f := fingerprintOf(&row.Spec)
	i := slices.Index(m.poison[f], row.ID)
	if i < 0 {
		return
	}
	m.journal.set(rowPoison+string(f[:])+string(row.ID[:]), nil)
	if m.poison[f] = slices.Delete(m.poison[f], i, i+1); len(m.poison[f]) == 0 {
		delete(m.poison, f)
	}
}

// attempts is a number of attempts, or the default for 0.
func attempts(n int) int {
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

// after is the end of a time that begins now.
func (m *Machine) after(d time.Duration) int64 {
	if m.now > 0 && int64(d) > math.MaxInt64-m.now {
		return math.MaxInt64
	}
	return m.now + int64(d)
}
