package queue

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// shortage is an error of the process, and not of the task.
type shortage struct{ err error }

func (s *shortage) Error() string { return s.err.Error() }

func (s *shortage) Unwrap() error { return s.err }

// Shortage returns what a handler returns when this process lacks what any task
// needs to start: descriptors, processes, memory, room on the disk of its own files.
// The task is released and has not failed; its step has the text of err, which should say
// what to do about it.
//
// Until an attempt starts again, this Run claims one task at a time, with a pause
// before each that doubles from 100 ms to 10 s. Other workers are not slowed down. An
// attempt counts as started when [Attempt.Started] is called, or when its handler
// returns anything but a shortage.
func Shortage(err error) error { return &shortage{err} }

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

// slowdown bounds the claims of a session whose process is short of something. The
// zero value claims without bounds, and is safe for concurrent use.
type slowdown struct {
	// round is the number of shortages so far. An attempt ends the slowdown only if no
	// shortage has been reported since it began.
	round atomic.Uint64
	slow  atomic.Bool // pause is not 0; spares the mutex while nothing is short

	mu      sync.Mutex
	pause   time.Duration // between two claims; 0 if nothing is short
	next    time.Time     // of the next claim
	changed chan struct{} // closed when that begins or ends; nil without waiters
}

// begin is called when an attempt has ended with a shortage.
func (s *slowdown) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round.Add(1)
	s.slow.Store(true)
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
		s.pause, s.next = 0, time.Time{}
		s.slow.Store(false)
		s.notify()
	}
}

// notify wakes those that wait for a change. The caller holds mu.
func (s *slowdown) notify() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// change returns a channel that is closed when the slowdown begins, goes on or ends.
func (s *slowdown) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// until returns when the next claim may be made; the zero time if that is now.
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

// probe takes the right to make the next claim, and reports whether another session's
// loop has not taken it.
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

// unused gives that right back: the claim brought no task, which shows nothing.
func (s *slowdown) unused(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause > 0 {
		s.pause, s.next = max(s.pause/2, firstPause), now
		s.notify()
	}
}
