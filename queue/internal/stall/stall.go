// Package stall tells callers that a write takes too long to wait for it.
package stall

import (
	"sync"
	"time"
)

// AnswerWithin is how long callers wait for a write that is blocked.
const AnswerWithin = 3 * time.Second

// Stall notifies callers when a write has been blocked for AnswerWithin. The zero value is
// ready to use. One goroutine at a time calls Watch; other methods are safe for concurrent
// use.
type Stall struct {
	mu     sync.Mutex
	waits  chan struct{} // closed while the write is late; nil before the first use
	closed bool          // waits is closed
}

// Channel returns a channel that is closed while a write has been blocked for
// AnswerWithin.
func (s *Stall) Channel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == nil {
		s.waits = make(chan struct{})
	}
	return s.waits
}

// Watch begins the time of a write, and end ends it. The time counts while reason returns
// why the write is blocked: a write that is slow but not blocked is waited for.
func (s *Stall) Watch(reason func() error) (end func()) {
	var timer *time.Timer
	ended := false // guarded by mu
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(AnswerWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case ended || s.closed:
		case reason() == nil:
			timer.Reset(AnswerWithin)
		default:
			if s.waits == nil {
				s.waits = make(chan struct{})
			}
			close(s.waits)
			s.closed = true
		}
	})
	return func() {
		timer.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended = true; s.closed {
			s.waits, s.closed = nil, false
		}
	}
}
