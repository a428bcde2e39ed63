package filestore

import (
	"sync"
	"time"
)

// answerWithin is how long calls wait with a batch that waits for room.
const answerWithin = 3 * time.Second

// stall notifies callers when a batch has waited for room as long as they may wait. The zero
// value is ready for use; watch is called by one goroutine at a time, the others by any.
type stall struct {
	mu     sync.Mutex
	waits  chan struct{} // closed while that is so; nil before the first use
	closed bool          // waits is
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

// watch is called when a batch is about to be written, and end when it has been. A disk
// that is slow and not full is waited for.
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
