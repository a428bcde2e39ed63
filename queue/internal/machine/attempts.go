package machine

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// attempts handles running tasks: heartbeats and orders extend and steer an attempt; an
// outcome, a lost lease or a release ends it. Only the holder of the present token can
// extend or settle a lease. An outcome without a lease is accepted if it repeats an
// outcome that was accepted before. The caller of each method holds the lock of the
// machine.
type attempts struct {
	cfg          *Config
	clock        *clock
	fingerprints *fingerprints
	journal      *journal.Journal
	queues       *queueSet
	rows         *taskRows
	states       *stateIndex
	tasks        *tasks
	transitions  *transitions
}

// heartbeat extends the lease of a task and stores its progress and checkpoint. The
// answer has the reason why the worker has to stop the task, if any.
func (a *attempts) heartbeat(b *queue.Heartbeat) queue.Answer {
	t := a.running(Lease{b.ID, b.Token})
	if t == nil || t.lease.fenced {
		return queue.Answer{Stop: queue.StopLost}
	}
	held := t.lease
	a.states.extend(t, b.Lease)
	if b.Progress != (queue.Progress{}) {
		held.row.Progress = b.Progress
		held.row.Progress.Note = shortened(b.Progress.Note)
	}
	if b.Checkpoint != nil {
		held.row.Checkpoint = bytes.Clone(b.Checkpoint)
		a.rows.write(t.id, &held.row)
	}
	return queue.Answer{Stop: queue.StopReason(held.order), Reason: held.reason}
}

// order gives the worker of a running task an order. The worker receives it with the
// answer to its next heartbeat. OrderResume withdraws a pause while the task still runs.
// order reports whether anything has changed.
func (a *attempts) order(t *task, c *queue.Command) bool {
	held := t.lease
	switch {
	case c.Do == queue.OrderResume && held.order == queue.OrderPause:
		held.order, held.by, held.reason = 0, "", ""
	case c.Do == queue.OrderPause && held.order == 0, c.Do == queue.OrderCancel && held.order != queue.OrderCancel:
		held.order, held.by, held.reason = c.Do, c.By, c.Reason
	default:
		return false
	}
	held.row.Order, held.row.OrderBy, held.row.OrderReason = held.order, held.by, held.reason
	a.rows.write(t.id, &held.row)
	return true
}

// running returns the task of a lease that has not ended, nil if there is none.
func (a *attempts) running(l Lease) *task {
	t := a.tasks.get(l.ID)
	if t == nil || t.leased() == nil || t.lease.row.Lease.Token != l.Token {
		return nil
	}
	return t
}

// settle checks an outcome, and ends the lease with it as end does.
func (a *attempts) settle(o *queue.Outcome) error {
	if err := a.check(o); err != nil {
		return err
	}
	return a.end(o)
}

// check checks the fields of an outcome. It needs no lock.
func (a *attempts) check(o *queue.Outcome) error {
	if !o.Kind.Valid() {
		return fmt.Errorf("%w: unknown kind of outcome: %s", queue.ErrInvalid, o.Kind)
	}
	if n := len(o.Result); n > a.cfg.MaxResult {
		return tooLarge("result", n, a.cfg.MaxResult)
	}
	if n := len(o.Checkpoint); n > a.cfg.MaxCheckpoint {
		return tooLarge("checkpoint", n, a.cfg.MaxCheckpoint)
	}
	return nil
}

// end ends a lease with an outcome. An outcome without a lease is accepted if it repeats an
// outcome that was accepted before; otherwise the error is ErrStale.
func (a *attempts) end(o *queue.Outcome) error {
	t := a.running(Lease{o.ID, o.Token})
	if t == nil {
		return a.settleWithoutLease(o)
	}
	held := t.lease
	row := &held.row
	w := cause{on: o.Kind.Trigger(), by: row.Lease.Worker, token: o.Token}
	clearLease(row)
	if o.Checkpoint != nil {
		row.Checkpoint = o.Checkpoint
	}
	if o.Kind != queue.OutcomeRelease {
		row.Crashes = 0 // the attempt has ended without a crash
	}
	switch o.Kind {
	case queue.OutcomeSuccess:
		row.Result, row.Error = o.Result, ""
		a.transitions.change(t, row, queue.Succeeded, w)
	case queue.OutcomeFailure:
		row.Error = shortened(o.Error)
		w.detail = row.Error
		row.Failures++
		if o.Permanent || row.Failures >= attemptsOrDefault(row.MaxAttempts) {
			a.transitions.change(t, row, queue.Dead, w)
		} else {
			a.requeue(t, row, held, o.RunAt, w)
		}
	default:
		if o.Kind == queue.OutcomeRelease {
			w.detail = shortened(o.Error)
		}
		a.requeue(t, row, held, o.RunAt, w)
	}
	return nil
}

// settleWithoutLease returns nil if an outcome repeats one that was accepted before,
// which the steps of the task show, and ErrStale otherwise. A release that an order
// turned into a pause or a cancellation counts as accepted. So does any outcome of an attempt
// that a transaction has settled: the outcome in the transaction is the one that counts.
func (a *attempts) settleWithoutLease(o *queue.Outcome) error {
	row, err := a.rowOf(o.ID)
	if err == nil {
		for _, step := range row.Steps {
			applied := o.Kind == queue.OutcomeRelease && (step.On == queue.OnPause || step.On == queue.OnCancel)
			settled := o.InTx && (step.On == queue.OnSuccess || step.On == queue.OnFailure ||
				step.On == queue.OnSnooze || step.On == queue.OnRelease)
			if o.Token != 0 && step.Token == o.Token && (step.On == o.Kind.Trigger() || applied || settled) {
				return nil
			}
		}
	} else if !errors.Is(err, queue.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w: task %s", queue.ErrStale, o.ID)
}

// rowOf reads the row of a task by its ID. Errors: ErrNotFound.
func (a *attempts) rowOf(id queue.ID) (record.Row, error) {
	t := a.tasks.get(id)
	if t == nil {
		return record.Row{}, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	return a.rows.row(t)
}

// requeue makes an unfinished task wait for its next attempt, or applies the order that
// its worker was given during this one.
func (a *attempts) requeue(t *task, row *record.Row, held *lease, runAt time.Time, w cause) {
	if t.group != nil {
		t.group.running = nil // an older task of the group may have been retried, and is first now
		defer func() {
			if g := a.queues.of(t).groups.byName[row.Group]; g != nil {
				a.transitions.unhold(g.first())
			}
		}()
	}
	if held.order != 0 && w.on == queue.OnRelease {
		a.applyOrder(t, row, held, w.token)
		return
	}
	a.states.arm(t, row)
	if w.on == queue.OnRelease || w.on == queue.OnLost {
		a.transitions.change(t, row, a.transitions.pending(t, 0), w)
	} else {
		row.RunAt = runAt
		a.transitions.change(t, row, queue.Scheduled, w)
		if unix(runAt) <= a.clock.now && held.order == 0 {
			a.transitions.change(t, row, a.transitions.pending(t, 0), cause{on: queue.OnDue})
		}
	}
	if held.order != 0 {
		a.applyOrder(t, row, held, 0) // without a token: the lease has ended
	}
}

// applyOrder pauses or cancels a task whose worker was given that order.
func (a *attempts) applyOrder(t *task, row *record.Row, held *lease, token queue.Token) {
	to := queue.Cancelled
	if held.order == queue.OrderPause {
		to = queue.Paused
		a.states.arm(t, row)
	}
	a.transitions.change(t, row, to, cause{on: held.order.Trigger(), by: held.by, token: token, detail: held.reason})
}

// lose ends the lease of a task whose worker sent no heartbeat in time, and counts a
// crash. The task becomes Dead, and its work poison, at MaxCrashes crashes in a row.
func (a *attempts) lose(t *task) {
	held := t.lease
	row := &held.row
	w := cause{on: queue.OnLost, by: row.Lease.Worker, token: row.Lease.Token}
	clearLease(row)
	row.Crashes++
	if row.Crashes < attemptsOrDefault(row.MaxCrashes) {
		a.requeue(t, row, held, time.Time{}, w)
		return
	}
	w.detail = fmt.Sprintf("lost its worker %d times in a row", row.Crashes)
	row.Error = w.detail
	a.fingerprints.add(t, row)
	a.transitions.change(t, row, queue.Dead, w)
}

// release ends a lease without an outcome: neither a failure nor a crash is counted.
func (a *attempts) release(t *task, detail string) {
	held := t.lease
	row := &held.row
	w := cause{on: queue.OnRelease, by: row.Lease.Worker, token: row.Lease.Token, detail: detail}
	clearLease(row)
	a.requeue(t, row, held, time.Time{}, w)
}

// releaseAll releases the leases of workers in this process.
func (a *attempts) releaseAll() {
	if a.journal.Failed() != nil {
		return // nothing can be written; the next machine counts these leases as lost
	}
	for _, t := range a.states.leased() {
		if t.lease.row.Remote == 0 {
			a.release(t, "the store was closed")
		}
	}
}

// clearLease removes the lease and the order from the row of a task that ran. The
// worker and the token stay in the row: an entry of the lease log with that token or an
// older one is void.
func clearLease(row *record.Row) {
	row.Lease.Until, row.Remote = time.Time{}, 0
	row.Order, row.OrderBy, row.OrderReason = 0, "", ""
}

// attemptsOrDefault returns n, or the default for 0.
func attemptsOrDefault(n int) int {
	const usual = 3
	if n == 0 {
		return usual
	}
	return n
}
