package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// settleMost is the largest number of outcomes that one call settles.
const settleMost = 512

// settle sends outcomes to the store until the channel is closed, with one call for all
// that are in the channel at a time.
func (s *session) settle() {
	for o := range s.outcomes {
		batch := append(make([]Outcome, 0, len(s.outcomes)+1), o)
		for len(batch) < settleMost && len(s.outcomes) > 0 {
			batch = append(batch, <-s.outcomes)
		}
		s.settleAll(batch)
	}
}

// settleAll settles outcomes. If the store cannot be reached it retries for as long as
// the leases can last: after that other workers have the tasks.
func (s *session) settleAll(batch []Outcome) {
	const first = 10 * time.Millisecond
	giveUp := s.q.clock.Now().Add(s.q.cfg.Lease)
	for wait := first; ; wait = min(2*wait, s.q.cfg.Poll) {
		if by := s.settleBy.Load(); by != 0 && by < giveUp.UnixNano() {
			giveUp = time.Unix(0, by) // Run is stopping: all remaining outcomes have this time together
		}
		answers, err := s.settleUntil(giveUp, batch)
		if err == nil {
			s.settled(batch, answers)
			return
		}
		s.q.cfg.Logger.Error("settle tasks", slog.Int("tasks", len(batch)), slog.Any("error", err))
		if errors.Is(err, ErrClosed) || s.q.clock.Now().After(giveUp) {
			break
		}
		time.Sleep(wait)
	}
	for _, o := range batch {
		s.remove(o)
	}
}

// settleUntil makes one call, which ends at giveUp at the latest.
func (s *session) settleUntil(giveUp time.Time, batch []Outcome) ([]error, error) {
	now := s.q.clock.Now()
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.base), max(giveUp.Sub(now), atLeast))
	defer stop()
	return s.q.store.Settle(ctx, now, batch)
}

func (s *session) settled(batch []Outcome, answers []error) {
	for i, err := range answers {
		o := batch[i]
		if err == nil {
			s.done(o)
			s.q.dueAt(o.RunAt)
			continue
		}
		s.remove(o)
		switch {
		case errors.Is(err, ErrTooLarge), errors.Is(err, ErrInvalid):
			s.refused(o, err)
		default:
			s.q.cfg.Logger.Warn("the outcome of a task came too late", o.attrs(err)...)
		}
	}
}

// refused replaces an outcome that the store refuses with a permanent failure: otherwise
// the task would run again and again until its leases have been lost too often.
func (s *session) refused(o Outcome, err error) {
	s.q.cfg.Logger.Error("the outcome of a task was refused", o.attrs(err)...)
	if o.Kind == OutcomeFailure && o.Permanent && o.Checkpoint == nil {
		return // the outcome is such a failure already
	}
	s.settleAll([]Outcome{{ID: o.ID, Token: o.Token, Kind: OutcomeFailure, Permanent: true, Error: err.Error()}})
}

// attrs returns the log attributes of an outcome that was refused.
func (o *Outcome) attrs(err error) []any {
	return []any{slog.Any("task", o.ID), slog.Any("outcome", o.Kind), slog.Any("error", err)}
}
