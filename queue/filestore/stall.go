package filestore

import (
	"sync"
	"time"
)

// answerWithin is how long calls wait while a batch waits for space.
const answerWithin = 3 * time.Second

// stall notifies callers when a batch has waited for space for answerWithin. The zero
// value is ready to use. One goroutine at a time calls watch; other methods are safe for
// concurrent use.
type stall struct {
	mu     sync.Mutex
	waits  chan struct{} // closed while the batch is late; nil before the first use
	closed bool          // waits is closed
}

// channel returns a channel that is closed while a batch has waited for answerWithin.
func (s *stall) channel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == nil {
		s.waits = make(chan struct{})
	}
	return s.waits
}

// watch begins the time of a batch, and end ends it. A disk that is slow but not full
// does not count.
func (s *stall) watch(g *guard) (end func()) {
	var timer *time.Timer
	ended := false // guarded by mu
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(answerWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case ended || s.closed:
		case g.state() == nil:
			timer.Reset(answerWithin)
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
