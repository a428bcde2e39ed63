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

// heartbeatUntil sends heartbeats of the worker and its tasks until ctx ends, and acts
// on the answers.
func (s *session) heartbeatUntil(ctx context.Context) {
	every := s.heartbeatEvery()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil { // even if another event came together with its end
		if err := s.heartbeat(ctx); errors.Is(err, errLate) {
			continue // it has waited
		}
		select {
		case <-tick.C:
		case <-s.ordered:
		case <-ctx.Done():
		}
		taken(tick.C) // one heartbeat serves all requests for one
		taken(s.ordered)
	}
}

// errLate is wrapped by the error of a heartbeat that was given up.
var errLate = fmt.Errorf("%w: no answer", ErrUnavailable)

func (s *session) heartbeatEvery() time.Duration {
	return min(s.q.cfg.Lease/3, s.q.cfg.Poll, heartbeatMost)
}

// inTime is send, given up early enough for two more before the leases end: the connection may be dead,
// or the store may wait for its disk, where a heartbeat without checkpoints does not.
func (s *session) inTime(
	ctx context.Context, now time.Time, w Worker, runs []*Attempt, heartbeats []Heartbeat,
) ([]Answer, error) {
	patience := (s.q.cfg.Lease - s.heartbeatEvery()) / 3
	inTime, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, err := s.send(inTime, now, w, runs, heartbeats)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w for %v: %w", errLate, patience, err)
	}
	return answers, err
}

// heartbeat sends a heartbeat of the worker and its tasks. Its error is logged.
func (s *session) heartbeat(ctx context.Context) error {
	runs := s.leases.attempts()
	heartbeats, saved := make([]Heartbeat, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		heartbeats[i], saved[i] = r.heartbeat(s.q.cfg.Lease)
	}
	now := s.q.clock.Now()
	worker := s.worker
	worker.Slots = s.slots.Stats().Limit // the tasks may have changed
	answers, err := s.inTime(ctx, now, worker, runs, heartbeats)
	checkpoints := slices.ContainsFunc(heartbeats, func(b Heartbeat) bool { return b.Checkpoint != nil })
	if checkpoints && errors.Is(err, ErrUnavailable) {
		// A failure must not cost a lease, so the heartbeat is sent again.
		for i := range heartbeats {
			heartbeats[i].Checkpoint = nil
		}
		answers, err = s.inTime(ctx, now, worker, runs, heartbeats)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.q.cfg.Logger.Error("heartbeat", slog.Int("tasks", len(runs)), slog.Any("error", err))
		}
		return err
	}
	until := now.Add(s.q.cfg.Lease)
	for i, r := range runs {
		if answers[i].Missing {
			continue
		}
		r.ordered(answers[i].Stop)
		if answers[i].Stop == StopLost {
			continue
		}
		if heartbeats[i].Checkpoint != nil {
			r.acknowledged(saved[i])
		}
		s.leases.extend(r, until)
	}
	return nil
}

// send sends the heartbeats of runs. Those that the store refuses as too large are sent in two
// halves, down to a single one, whose handler ends and whose checkpoint is omitted: so it does
// not cost the other tasks their leases.
func (s *session) send(
	ctx context.Context, now time.Time, w Worker, runs []*Attempt, heartbeats []Heartbeat,
) ([]Answer, error) {
	answers, err := s.q.store.Heartbeat(ctx, now, w, heartbeats)
	half := len(runs) / 2
	switch {
	case !errors.Is(err, ErrTooLarge):
		return answers, err
	case half > 0:
		answers, err = s.send(ctx, now, w, runs[:half], heartbeats[:half])
		if err != nil {
			return nil, err
		}
		others, err := s.send(ctx, now, w, runs[half:], heartbeats[half:])
		return slices.Concat(answers, others), err
	case len(runs) == 0 || heartbeats[0].Checkpoint == nil:
		return nil, err
	}
	runs[0].end(err)
	heartbeats[0].Checkpoint = nil
	return s.q.store.Heartbeat(ctx, now, w, heartbeats)
}
