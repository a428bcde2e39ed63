package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// heartbeatUntil sends heartbeats of the worker and its tasks until ctx ends, and obeys
// the answers.
func (s *session) heartbeatUntil(ctx context.Context) {
	every := min(s.q.cfg.Lease/3, s.q.cfg.Poll)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil { // even if another event came together with its end
		s.heartbeat(ctx)
		select {
		case <-tick.C:
		case <-s.ordered:
		case <-ctx.Done():
		}
		taken(tick.C) // one heartbeat serves all requests for one
		taken(s.ordered)
	}
}

func (s *session) heartbeat(ctx context.Context) {
	s.mu.Lock()
	runs := make([]*Attempt, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	heartbeats, saved := make([]Heartbeat, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		heartbeats[i], saved[i] = r.heartbeat(s.q.cfg.Lease)
	}
	now := s.q.clock.Now()
	worker := s.worker
	worker.Slots = s.slots.Stats().Limit // the tasks may have changed
	answers, err := s.q.store.Heartbeat(ctx, now, worker, heartbeats)
	if errors.Is(err, ErrTooLarge) {
		s.endTooLarge(ctx, runs, heartbeats)
		answers, err = s.q.store.Heartbeat(ctx, now, worker, heartbeats)
	}
	checkpoints := slices.ContainsFunc(heartbeats, func(b Heartbeat) bool { return b.Checkpoint != nil })
	if checkpoints && errors.Is(err, ErrUnavailable) {
		// A failure must not cost a lease, so the heartbeat is sent again.
		for i := range heartbeats {
			heartbeats[i].Checkpoint, saved[i] = nil, -1
		}
		answers, err = s.q.store.Heartbeat(ctx, now, worker, heartbeats)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.q.cfg.Logger.Error("heartbeat", slog.Int("tasks", len(runs)), slog.Any("error", err))
		}
		return
	}
	until := now.Add(s.q.cfg.Lease)
	for i, r := range runs {
		if !answers[i].Missing && !r.ordered(answers[i].Stop) {
			r.acknowledged(saved[i])
			s.extend(r, until)
		}
	}
}

// endTooLarge finds the tasks with a checkpoint that is too large for the store, ends
// their handlers and omits the checkpoints, so that one of them does not cost all other
// tasks their leases.
func (s *session) endTooLarge(ctx context.Context, runs []*Attempt, heartbeats []Heartbeat) {
	for i := range heartbeats {
		if heartbeats[i].Checkpoint == nil {
			continue
		}
		_, err := s.q.store.Heartbeat(ctx, s.q.clock.Now(), s.worker, heartbeats[i:i+1])
		if errors.Is(err, ErrTooLarge) {
			runs[i].end(err)
			heartbeats[i].Checkpoint = nil
		}
	}
}
