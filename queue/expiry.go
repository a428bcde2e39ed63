package queue

import (
	"context"
	"time"
)

// expireUntil ends the handlers whose leases are over by the clock of this process,
// until ctx ends: other workers may have their tasks. It needs no answer of the
// store, which may hang. One timer serves all tasks; one for each would cost more
// than most other things that are done for a small task.
func (s *session) expireUntil(ctx context.Context) {
	wake := time.NewTimer(s.q.cfg.Lease)
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

// expire ends handlers, and returns when the next lease may be over.
func (s *session) expire(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// expect has the lease of a task be watched. The session's mutex is held.
func (s *session) expect(a *Attempt) {
	if a.until.Before(s.first) { // else the next look is early enough to find it
		s.first = a.until
		signal(s.sooner)
	}
}

// extend moves the end of a lease.
func (s *session) extend(a *Attempt, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.until = until
}
