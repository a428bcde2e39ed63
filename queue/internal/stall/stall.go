// Package stall notifies callers that a write takes too long to wait for it.
package stall

import (
	"sync"
	"time"
)

// AnswerWithin is how long callers wait for a write that is blocked.
const AnswerWithin = 3 * time.Second

// Stall notifies callers while an operation has been blocked for AnswerWithin. The zero
// value is ready to use. It is safe for concurrent use.
type Stall struct {
	mu    sync.Mutex
	waits chan struct{} // closed while late > 0; nil before the first use
	late  int           // operations that have been blocked for AnswerWithin
}

// Channel returns a channel that is closed while an operation has been blocked for
// AnswerWithin.
func (s *Stall) Channel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channelLocked()
}

func (s *Stall) channelLocked() chan struct{} {
	if s.waits == nil {
		s.waits = make(chan struct{})
	}
	return s.waits
}

// Watch begins the time of an operation, and end ends it. The time counts while reason
// returns why the operation is blocked: one that is slow but not blocked is waited for.
// reason must not call s.
func (s *Stall) Watch(reason func() error) (end func()) {
	var timer *time.Timer
	ended, late := false, false // guarded by mu
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(AnswerWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case ended:
		case reason() == nil:
			timer.Reset(AnswerWithin)
		default:
			late = true
			if s.late++; s.late == 1 {
				close(s.channelLocked())
			}
		}
	})
	return func() {
		timer.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended = true; late {
			if s.late--; s.late == 0 {
				s.waits = nil
			}
		}
	}
}
