package queue

import (
	"context"
	"time"
)

// expireUntil ends, until ctx ends, the handlers whose leases have expired by the clock
// of this process: other workers may have their tasks. It needs no answer of the store,
// which may hang. One timer serves all tasks, because a timer for each would be a large
// part of the cost of a small task.
func (s *session) expireUntil(ctx context.Context) {
	s.mu.Lock()
	wake := time.NewTimer(max(s.first.Sub(s.q.clock.Now()), atLeast))
	s.mu.Unlock()
	defer wake.Stop()
	for {
		select {
		case <-wake.C:
		case <-s.sooner:
		case <-ctx.Done():
			return
		}
		now := s.q.clock.Now()
		wake.Reset(s.expire(now).Sub(now))
	}
}

// catchUp is how late a timer is if this process was stopped, or its machine paused, and how
// long what ends leases is postponed then. The heartbeats were as late, and are sent meanwhile:
// the store extends each lease of this process whose task it has not given to another.
const catchUp = time.Second

// expire ends the handlers of expired leases, and returns when the next lease may expire.
func (s *session) expire(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postponed = !s.postponed && now.Sub(s.first) >= catchUp; s.postponed {
		s.first = now.Add(catchUp)
		return s.first
	}
	s.first = now.Add(s.q.cfg.Lease)
	for _, a := range s.runs {
		switch {
		case !a.until.After(now):
			a.end(ErrStale)
		case a.until.Before(s.first):
			s.first = a.until
		}
	}
	return s.first
}

// expect makes expire watch the lease of a task. The caller holds the session's mutex.
func (s *session) expect(a *Attempt) {
	if a.until.Before(s.first) { // otherwise the next look is early enough
		s.first = a.until
		if now := s.q.clock.Now(); s.first.Before(now) { // the answer came late, and this process is not
			s.first = now
		}
		signal(s.sooner)
	}
}

// extend sets a later end of a lease.
func (s *session) extend(a *Attempt, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.until = until
}
