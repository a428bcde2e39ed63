package stint

import (
	"time"
	"weak"

	"github.com/stintgo/stint/internal/bucket"
)

// sweeper forgets the keys of a limiter that are full, by a timer. The limiter's lock
// guards it.
type sweeper struct {
	l     *limiter    // immutable
	timer *time.Timer // nil until the first key is remembered
	due   int64       // when it fires, or bucket.Never
}

// plan sets the timer for when keys can be forgotten. It needs the lock.
func (s *sweeper) plan() {
	due := s.l.keys.SweepAt()
	if due == s.due || s.timer == nil && due == bucket.Never {
		return
	}
	s.due = due
	in := time.Duration(max(due-s.l.now(), 0))
	if s.timer != nil {
		s.timer.Reset(in)
		return
	}
	// The timer does not keep the limiter from being collected, for days at low rates.
	self := weak.Make(s.l)
	s.timer = time.AfterFunc(in, func() {
		if l := self.Value(); l != nil {
			l.sweeps.sweep()
		}
	})
}

// sweep forgets the keys that are full. It releases the lock between pieces.
func (s *sweeper) sweep() {
	for s.piece() {
	}
}

func (s *sweeper) piece() (more bool) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.due = bucket.Never
	if more = s.l.keys.Sweep(s.l.now()); !more {
		s.plan()
	}
	return more
}
