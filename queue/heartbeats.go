package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// heartbeatMost is the longest time between two heartbeats: stores forget a worker after a
// minute without one.
const heartbeatMost = 20 * time.Second

// errLate is wrapped by the error of a heartbeat that was given up.
var errLate = fmt.Errorf("%w: no answer", ErrUnavailable)

// heartbeatUntil sends heartbeats of the worker and its tasks until ctx ends, and acts
// on the answers. A store may wait for its disk before it answers a heartbeat with checkpoints, and
// does not without any; and any connection may be dead. So a call with checkpoints that takes long
// goes on beside heartbeats without them, and one of these that has no answer is given up and
// repeated with twice the patience. The call with checkpoints, a heartbeat that is given up and its
// repetition fit into a lease.
func (s *session) heartbeatUntil(ctx context.Context) {
	every := min(s.q.cfg.Lease/3, s.q.cfg.Poll, heartbeatMost)
	tick := time.NewTicker(every)
	defer tick.Stop()
	h := heartbeats{s: s, first: min((s.q.cfg.Lease-every)/5, heartbeatMost)}
	defer h.wait()
	h.patience = h.first
	for ctx.Err() == nil { // even if another event came together with its end
		select {
		case err := <-h.saving: // even if the tick came together with it
			h.saved(ctx, err)
		default:
		}
		if err := h.send(ctx); errors.Is(err, errLate) {
			h.patience = min(2*h.patience, heartbeatMost)
			continue // it has waited
		}
		h.patience = h.first
		select {
		case <-tick.C:
		case <-s.ordered:
		case err := <-h.saving:
			h.saved(ctx, err)
		case <-ctx.Done():
		}
		taken(tick.C) // one heartbeat serves all requests for one
		taken(s.ordered)
	}
}

// heartbeats are the heartbeats of a session. They are for one goroutine.
type heartbeats struct {
	s               *session
	first, patience time.Duration // for the answer to the next heartbeat, at first and now

	// saving receives the end of a call with checkpoints that takes long; nil if none does. Until then
	// no other has any: a store that cannot write keeps what it gets in memory.
	saving chan error
}

// wait waits for the end of a call that is under way, whose context has ended.
func (h *heartbeats) wait() {
	if h.saving != nil {
		<-h.saving //nolint:errcheck // it is that of the context
	}
}

// saved records the end of a call that took long.
func (h *heartbeats) saved(ctx context.Context, err error) {
	h.saving = nil
	_ = h.log(ctx, err)
}

// send sends a heartbeat of the worker and its tasks. Its error is logged.
func (h *heartbeats) send(ctx context.Context) error {
	r := h.s.report()
	if h.saving == nil && r.saves() {
		ended, full := make(chan error, 1), r
		go func() { ended <- h.s.send(ctx, full) }()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrUnavailable) {
				return h.log(ctx, err)
			}
			// A checkpoint must not cost a lease, so the heartbeat is sent again without any.
		case <-time.After(h.first):
			h.saving = ended
		case <-ctx.Done():
			h.saving = ended
			return nil
		}
		r = h.s.report()
	}
	r.dropCheckpoints()
	inTime, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	err := h.s.send(inTime, r)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w for %v: %w", errLate, h.patience, err)
	}
	return h.log(ctx, err)
}

// log logs the error of a heartbeat, unless that was to end, and returns it.
func (h *heartbeats) log(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		h.s.q.cfg.Logger.Error("heartbeat", slog.Any("error", err))
	}
	return err
}

// report is what a heartbeat says: for each attempt its heartbeat, and the number of checkpoints that
// this covers.
type report struct {
	runs       []*Attempt
	heartbeats []Heartbeat
	saved      []int
}

func (s *session) report() report {
	runs := s.leases.attempts()
	r := report{runs, make([]Heartbeat, len(runs)), make([]int, len(runs))}
	for i, a := range runs {
		r.heartbeats[i], r.saved[i] = a.heartbeat(s.q.cfg.Lease)
	}
	return r
}

// saves reports whether the heartbeats have checkpoints.
func (r report) saves() bool {
	return slices.ContainsFunc(r.heartbeats, func(b Heartbeat) bool { return b.Checkpoint != nil })
}

func (r report) dropCheckpoints() {
	for i := range r.heartbeats {
		r.heartbeats[i].Checkpoint = nil
	}
}

// halves divides a report into two.
func (r report) halves() (first, second report) {
	n := len(r.runs) / 2
	return report{r.runs[:n], r.heartbeats[:n], r.saved[:n]}, report{r.runs[n:], r.heartbeats[n:], r.saved[n:]}
}

// send sends the heartbeats of a report, and acts on the answers. Those that the store refuses as too
// large are sent in two halves, down to a single one, whose handler ends and whose checkpoint is
// omitted: so it does not cost the other tasks their leases.
func (s *session) send(ctx context.Context, r report) error {
	now := s.q.clock.Now()
	worker := s.worker
	worker.Slots = s.slots.Stats().Limit // the tasks may have changed
	answers, err := s.q.store.Heartbeat(ctx, now, worker, r.heartbeats)
	switch {
	case err == nil:
		s.answered(r, answers, now.Add(s.q.cfg.Lease))
		return nil
	case !errors.Is(err, ErrTooLarge):
		return err
	case len(r.runs) > 1:
		first, second := r.halves()
		if err := s.send(ctx, first); err != nil {
			return err
		}
		return s.send(ctx, second)
	case len(r.runs) == 0 || r.heartbeats[0].Checkpoint == nil:
		return err
	}
	r.runs[0].end(err)
	r.dropCheckpoints()
	return s.send(ctx, r)
}

// answered acts on the answers to a report, which extend the leases until a time.
func (s *session) answered(r report, answers []Answer, until time.Time) {
	for i, a := range r.runs {
		if answers[i].Missing {
			continue
		}
		a.ordered(answers[i].Stop)
		if answers[i].Stop == StopLost {
			continue
		}
		if r.heartbeats[i].Checkpoint != nil {
			a.acknowledged(r.saved[i])
		}
		s.leases.extend(a, until)
	}
}
