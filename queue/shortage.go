package queue

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// shortage is an error of the process, not of the task.
type shortage struct{ err error }

func (s *shortage) Error() string { return s.err.Error() }

func (s *shortage) Unwrap() error { return s.err }

// Shortage returns the error with which a handler reports that this process lacks a
// resource that any task needs to start: descriptors, processes, memory, or disk space
// for its files. The task is released without a failure, unless its Timeout has passed; its
// step has the text of err, which should name the remedy.
//
// Until an attempt starts again, this Run claims one task at a time, with a pause before
// each that doubles from 100 ms to 10 s. Other workers are not slowed down. An attempt
// counts as started when [Attempt.Started] is called, or when its handler returns
// anything but a shortage.
//
// Shortage returns nil if err is nil.
func Shortage(err error) error {
	if err == nil {
		return nil
	}
	return &shortage{err}
}

// IsShortage reports whether err is an error of [Shortage], or wraps one.
func IsShortage(err error) bool {
	_, is := errors.AsType[*shortage](err)
	return is
}

// The pauses of a [slowdown].
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// slowdown limits the claims of a session whose process lacks a resource. The zero value
// does not limit them, and is safe for concurrent use.
type slowdown struct {
	// round is the number of shortages so far. An attempt ends the slowdown only if no
	// shortage has been reported since it began.
	round atomic.Uint64
	slow  atomic.Bool // pause is not 0; avoids the lock while there is no shortage

	mu      sync.Mutex
	pause   time.Duration // between two claims; 0 without a shortage
	next    time.Time     // of the next claim
	former  time.Duration // pause of the last slowdown, when it ended
	recent  time.Time     // a slowdown that begins before then continues with that pause
	changed chan struct{} // closed when the slowdown begins, continues or ends; nil without waiters
}

// begin is called when an attempt has ended with a shortage.
func (s *slowdown) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.Add(1)
	s.slow.Store(true)
	if s.pause == 0 && now.Before(s.recent) {
		s.pause = s.former
	}
	s.pause = max(s.pause, firstPause)
	s.next = now.Add(s.pause)
	s.notify()
}

// end is called when an attempt has started that began in a round.
func (s *slowdown) end(round uint64) {
	if !s.slow.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.round.Load() == round && s.pause > 0 {
		// The attempt may still return a shortage: its handler has called Started too early then.
		s.former, s.recent = s.pause, s.next.Add(longestPause)
		s.pause, s.next = 0, time.Time{}
		s.slow.Store(false)
		s.notify()
	}
}

// notify wakes the waiters for a change. The caller holds mu.
func (s *slowdown) notify() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// change returns a channel that is closed when the slowdown begins, continues or ends.
func (s *slowdown) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// until returns when the next claim is allowed; the zero time means now.
func (s *slowdown) until(now time.Time) time.Time {
	if !s.slow.Load() {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		return s.next
	}
	return time.Time{}
}

// probe reserves the next claim for its caller, and reports whether it was free.
func (s *slowdown) probe(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		return false
	}
	s.pause = min(2*s.pause, longestPause)
	s.next = now.Add(s.pause)
	return true
}

// unused undoes probe: the claim found no task, which shows nothing.
func (s *slowdown) unused(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause > 0 {
		s.pause, s.next = max(s.pause/2, firstPause), now
		s.notify()
	}
}
