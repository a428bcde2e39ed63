package queue

import (
	"context"
	"log/slog"
	"time"
)

// maintainMax is the largest number of changes that one call of Maintain makes, so that the
// call does not take long: a store may wait for its disk after each hundred changes.
const maintainMax = 1000

// maintainUntil calls Maintain until ctx ends: at the time that the last call returned,
// when this process has submitted a task that is due earlier, and at least every
// Config.Poll, for the tasks of other processes. A call that is late by catchUp is postponed once
// by that. At its end it wakes another call of Run, which may not know of the task that is due
// next.
func (s *session) maintainUntil(ctx context.Context) {
	wake := time.NewTimer(s.q.cfg.Poll)
	defer wake.Stop()
	due, postponed := s.q.clock.Now(), false
	defer func() { s.q.soon.add(s.q.clock.Now()) }()
	for ctx.Err() == nil { // even if another event came together with its end
		now := s.q.clock.Now()
		wait := due.Sub(now)
		if wait <= 0 { // a timer must not be set to 0: see soonest
			if postponed = !postponed && -wait >= catchUp; postponed {
				due = now.Add(catchUp)
				continue
			}
			taken(s.q.soon) // Maintain returns when that task is due
			due = s.maintain(ctx)
			continue
		}
		wake.Reset(wait)
		select {
		case <-wake.C:
		case at := <-s.q.soon:
			if now := s.q.clock.Now(); at.Before(now) { // the task is late, and this process is not
				at = now
			}
			if !postponed && at.Before(due) { // what is postponed is done with it
				due = at
			}
		case <-ctx.Done():
		}
	}
}

// maintain makes the changes that are due, and returns when to call it again.
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
	if !next.After(now) { // the limit ended the call, or the store's clock is behind
		return now.Add(atLeast)
	}
	return next
}
