package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// moveEvery is about how often a process that leads too many groups hands one over, and
// the shortest time between two groups that a process accepts. It is longer than
// enrollEvery, so that the counts that a leader knows are those after the last move.
const moveEvery = 5 * time.Second

// seats are the groups that a process leads. A process hands a group over only to one that
// leads at least two fewer, which checks that itself. So each move makes the sum of the
// squares of the numbers smaller, and groups never move in circles. A nil *seats is that of a
// node without groups. It is safe for concurrent use.
type seats struct {
	every time.Duration // moveEvery, but for tests
	leads atomic.Int32

	mu       sync.Mutex // guards the fields below
	accepted time.Time  // when the last invitation was accepted; zero if none was
}

// replaced counts the lead of a node whose view has changed: whether the node led before, and leads now.
func (s *seats) replaced(led, leads bool) {
	if s == nil {
		return
	}
	if led {
		s.leads.Add(-1)
	}
	if leads {
		s.leads.Add(1)
	}
}

// load returns how many groups the process leads.
func (s *seats) load() int {
	if s == nil {
		return 0
	}
	return int(s.leads.Load())
}

// accept reports whether the process takes a group over from one whose number of groups is leads.
// After that it accepts no other for a while, until the load has changed.
func (s *seats) accept(leads int, now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load()+2 > leads || !s.accepted.IsZero() && now.Sub(s.accepted) < s.every {
		return false
	}
	s.accepted = now
	return true
}
