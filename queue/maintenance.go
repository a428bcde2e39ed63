package queue

import (
	"context"
	"log/slog"
	"time"
)

// maintainMax is how many changes the tender asks for at once, so that others get
// their turn between.
const maintainMax = 1000

// maintainUntil has the store do what is due, until ctx ends: when it has said that
// something is, when this process has submitted something that is due earlier,
// and every now and then for what others have. In the end another call of Run is to
// look, which may not have heard of what this one has.
func (s *session) maintainUntil(ctx context.Context) {
	wake := time.NewTimer(s.q.cfg.Poll)
	defer wake.Stop()
	var due time.Time
	defer func() { s.q.dueAt(s.q.clock.Now()) }()
	for ctx.Err() == nil { // also if something else came with its end
		wait := due.Sub(s.q.clock.Now())
		if wait <= 0 { // no timer is set to nothing: see soonest
			taken(s.q.soon) // the store knows of it by now, and says when it is due
			due = s.maintain(ctx)
			continue
		}
		wake.Reset(wait)
		select {
		case <-wake.C:
		case at := <-s.q.soon:
			if at.Before(due) {
				due = at
			}
		case <-ctx.Done():
		}
	}
}

// maintain has the store do what is due, and returns when to do so again.
func (s *session) maintain(ctx context.Context) time.Time {
	now := s.q.clock.Now()
	latest := now.Add(s.q.cfg.Poll)
	next, err := s.q.store.Maintain(ctx, now, maintainMax)
	if err != nil {
		if ctx.Err() == nil {
			s.q.cfg.Logger.Error("maintain", slog.Any("error", err))
		}
		return latest
	}
	if next.IsZero() || next.After(latest) {
		return latest
	}
	if !next.After(now) { // the limit stopped it, or its clock is behind
		return now.Add(atLeast)
	}
	return next
}
