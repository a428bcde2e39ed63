package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// attempts is how often a task may fail, or crash its worker, if nothing is set.
const attempts = 3

func (n *naive) Settle(_ context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	end, err := n.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	answers := make([]error, len(outcomes))
	for i, o := range outcomes {
		answers[i] = n.settle(o)
		n.revise()
	}
	n.reserve()
	n.signal()
	return answers, nil
}

func (n *naive) settle(o queue.Outcome) error {
	switch o.Kind {
	case queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease:
	default:
		return fmt.Errorf("%w: %s is no kind of outcome", queue.ErrInvalid, o.Kind)
	}
	if len(o.Result) > n.cfg.MaxResult || len(o.Checkpoint) > n.cfg.MaxCheckpoint {
		return fmt.Errorf("%w: a result of %d bytes, a checkpoint of %d", queue.ErrTooLarge, len(o.Result), len(o.Checkpoint))
	}
	r := n.row(o.ID)
	switch {
	case r != nil && r.State == queue.Running && r.Lease.Token == o.Token:
		n.end(r, o)
		return nil
	case r != nil && slices.ContainsFunc(r.Steps, func(s queue.Step) bool { return repeats(o, s) }):
		return nil
	default:
		return fmt.Errorf("%w: task %s, token %d", queue.ErrStale, o.ID, o.Token)
	}
}

// repeats reports whether an outcome is the one that a step came from.
func repeats(o queue.Outcome, s queue.Step) bool {
	obeyed := o.Kind == queue.OutcomeRelease && (s.On == queue.OnPause || s.On == queue.OnCancel)
	return s.Token == o.Token && (s.On == o.Kind.Trigger() || obeyed)
}

// end ends a lease as its worker says.
func (n *naive) end(r *row, o queue.Outcome) {
	s := queue.Step{On: o.Kind.Trigger(), By: r.Lease.Worker, Token: o.Token}
	if o.Checkpoint != nil {
		r.Checkpoint = slices.Clone(o.Checkpoint)
	}
	if o.Kind != queue.OutcomeRelease {
		r.Crashes = 0 // the worker has outlived the attempt
	}
	switch o.Kind {
	case queue.OutcomeSuccess:
		r.Result, r.Error = slices.Clone(o.Result), ""
		n.step(r, queue.Succeeded, s)
	case queue.OutcomeFailure:
		r.Failures++
		r.Error, s.Detail = o.Error, o.Error
		if o.Permanent || r.Failures >= cmp.Or(r.MaxAttempts, attempts) {
			n.step(r, queue.Dead, s)
			return
		}
		n.again(r, queue.Scheduled, o.RunAt, s)
	case queue.OutcomeSnooze:
		n.again(r, queue.Scheduled, o.RunAt, s)
	default:
		s.Detail = o.Error
		n.giveBack(r, s)
	}
}

// giveBack ends a lease without a verdict on the task. If its worker had an
// order, that is what it has done.
func (n *naive) giveBack(r *row, s queue.Step) {
	switch r.Order {
	case queue.OrderPause:
		n.step(r, queue.Paused, queue.Step{On: r.Order.Trigger(), By: r.orderBy, Token: s.Token, Detail: r.orderWhy})
	case queue.OrderCancel:
		n.step(r, queue.Cancelled, queue.Step{On: r.Order.Trigger(), By: r.orderBy, Token: s.Token, Detail: r.orderWhy})
	default:
		n.step(r, n.pending(r), s)
	}
}

// again has a task wait for its next attempt, unless an order that its worker
// had takes effect.
func (n *naive) again(r *row, to queue.State, runAt time.Time, s queue.Step) {
	order := r.Order
	if to == queue.Scheduled {
		r.RunAt = runAt
	}
	n.step(r, to, s)
	switch {
	case order == queue.OrderPause:
		n.step(r, queue.Paused, queue.Step{On: order.Trigger(), By: r.orderBy, Detail: r.orderWhy})
	case order == queue.OrderCancel:
		n.step(r, queue.Cancelled, queue.Step{On: order.Trigger(), By: r.orderBy, Detail: r.orderWhy})
	case to == queue.Scheduled && !runAt.After(n.now):
		n.step(r, n.pending(r), queue.Step{On: queue.OnDue})
	}
}

// lose ends a lease that ran out.
func (n *naive) lose(r *row) {
	s := queue.Step{On: queue.OnLost, By: r.Lease.Worker, Token: r.Lease.Token}
	r.Crashes++
	if r.Crashes < cmp.Or(r.MaxCrashes, attempts) {
		n.again(r, n.pending(r), time.Time{}, s)
		return
	}
	r.Error = fmt.Sprintf("lost its worker %d times in a row", r.Crashes)
	s.Detail = r.Error
	n.step(r, queue.Dead, s)
}

func (n *naive) Heartbeat(_ context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat) ([]queue.Answer, error) {
	if err := errors.Join(validWorker(w.Name), w.Validate()); err != nil {
		return nil, err
	}
	for _, b := range heartbeats {
		if len(b.Checkpoint) > n.cfg.MaxCheckpoint {
			return nil, fmt.Errorf("%w: a checkpoint of %d bytes", queue.ErrTooLarge, len(b.Checkpoint))
		}
	}
	end, err := n.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	n.workers[w.Name] = heard{w, n.now}
	answers := make([]queue.Answer, len(heartbeats))
	for i, b := range heartbeats {
		answers[i] = n.heartbeat(b)
	}
	return answers, nil
}

func (n *naive) heartbeat(b queue.Heartbeat) queue.Answer {
	r := n.row(b.ID)
	if r == nil || r.State != queue.Running || r.Lease.Token != b.Token {
		return queue.Answer{Stop: queue.StopLost}
	}
	r.Lease.Until = later(r.Lease.Until, n.now.Add(b.Lease))
	if b.Progress != (queue.Progress{}) {
		r.Progress = b.Progress
		r.Progress.Note = r.Progress.Note[:min(len(r.Progress.Note), queue.MaxReason)]
	}
	if b.Checkpoint != nil {
		r.Checkpoint = slices.Clone(b.Checkpoint)
	}
	if r.Order == 0 {
		return queue.Answer{}
	}
	return queue.Answer{Stop: queue.StopReason(r.Order), Reason: r.orderWhy}
}
