package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// beatUntil gives signs of life of the worker and its tasks until ctx ends, and
// does what the answers say.
func (s *session) beatUntil(ctx context.Context) {
	every := min(s.q.cfg.Lease/3, s.q.cfg.Poll)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.beat(ctx)
		select {
		case <-tick.C:
		case <-s.q.told:
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) beat(ctx context.Context) {
	s.mu.Lock()
	runs := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		runs = append(runs, r)
	}
	s.mu.Unlock()
	beats, saved := make([]Beat, len(runs)), make([]int, len(runs))
	for i, r := range runs {
		beats[i], saved[i] = r.beat(s.q.cfg.Lease)
	}
	now := s.q.clock.now()
	answers, err := s.q.store.Beat(ctx, now, s.worker, beats)
	if errors.Is(err, ErrTooLarge) {
		s.endTooLarge(ctx, runs, beats)
		answers, err = s.q.store.Beat(ctx, now, s.worker, beats)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.q.cfg.Logger.Error("beat", slog.Int("tasks", len(runs)), slog.Any("error", err))
		}
		return
	}
	for i, r := range runs {
		if !r.told(answers[i].Order) {
			r.heard(saved[i])
			r.lapse.Reset(now.Add(s.q.cfg.Lease).Sub(s.q.clock.now()))
		}
	}
}

// endTooLarge finds the tasks with a checkpoint that the store does not take,
// ends their handlers and leaves the checkpoints out, so that one of them does
// not cost all others their leases.
func (s *session) endTooLarge(ctx context.Context, runs []*run, beats []Beat) {
	for i := range beats {
		if beats[i].Checkpoint == nil {
			continue
		}
		_, err := s.q.store.Beat(ctx, s.q.clock.now(), s.worker, beats[i:i+1])
		if errors.Is(err, ErrTooLarge) {
			runs[i].cancel(err)
			beats[i].Checkpoint = nil
		}
	}
}

// told does what a worker is told of a task, and reports whether that ends it.
func (r *run) told(order Trigger) (ends bool) {
	switch order {
	case OnPause:
		r.cancel(ErrPaused)
	case OnCancel:
		r.cancel(ErrCancelled)
	case OnLost:
		r.cancel(ErrStale)
	default:
		return false
	}
	return true
}
