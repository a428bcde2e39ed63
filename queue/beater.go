package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// beatUntil gives signs of life of the worker and its tasks until ctx ends, and
// does what the answers say.
func (s *session) beatUntil(ctx context.Context) {
	every := min(s.q.cfg.Lease/3, s.q.cfg.Poll)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil { // also if there was something else to do when it ended
		s.beat(ctx)
		select {
		case <-tick.C:
		case <-s.ordered:
		case <-ctx.Done():
		}
		taken(tick.C) // one heartbeat serves all requests for one
		taken(s.ordered)
	}
}

func (s *session) beat(ctx context.Context) {
	s.mu.Lock()
	runs := make([]*Attempt, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	beats, saved := make([]Beat, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		beats[i], saved[i] = r.beat(s.q.cfg.Lease)
	}
	now := s.q.clock.now()
	worker := s.worker
	worker.Slots = s.slots.Stats().Limit // which may have been changed
	answers, err := s.q.store.Beat(ctx, now, worker, beats)
	if errors.Is(err, ErrTooLarge) {
		s.endTooLarge(ctx, runs, beats)
		answers, err = s.q.store.Beat(ctx, now, worker, beats)
	}
	if errors.Is(err, ErrUnavailable) && slices.ContainsFunc(beats, func(b Beat) bool { return b.Checkpoint != nil }) {
		// What cannot be written at present should cost no lease; it is sent again.
		for i := range beats {
			beats[i].Checkpoint, saved[i] = nil, -1
		}
		answers, err = s.q.store.Beat(ctx, now, worker, beats)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.q.cfg.Logger.Error("beat", slog.Int("tasks", len(runs)), slog.Any("error", err))
		}
		return
	}
	until := now.Add(s.q.cfg.Lease)
	for i, r := range runs {
		if !r.ordered(answers[i].Stop) {
			r.acknowledged(saved[i])
			s.extend(r, until)
		}
	}
}

// endTooLarge finds the tasks with a checkpoint that the store does not take,
// ends their handlers and leaves the checkpoints out, so that one of them does
// not cost all others their leases.
func (s *session) endTooLarge(ctx context.Context, runs []*Attempt, beats []Beat) {
	for i := range beats {
		if beats[i].Checkpoint == nil {
			continue
		}
		_, err := s.q.store.Beat(ctx, s.q.clock.now(), s.worker, beats[i:i+1])
		if errors.Is(err, ErrTooLarge) {
			runs[i].end(err)
			beats[i].Checkpoint = nil
		}
	}
}
