package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// steps is the lock of the machine, and what begins and ends each call: one step under
// the lock, which decides, changes the memory, and writes rows to the journal; then,
// without the lock, a wait until they are durable. A step does a bounded amount of work.
// drain completes what a step has left, in steps of its own.
//
// begin and its variants take mu; end and endAt give it up. mu comes before the
// journal's, which the journal takes by itself. closed, opened and correcting are guarded
// by mu.
type steps struct {
	cascades  *cascades
	cfg       *Config
	corrector *corrector
	journal   *journal.Journal
	keyRates  *keyRates
	leaseLog  *leaseLog
	passes    *passes

	reading    sync.WaitGroup // reads of rows without the lock, and goroutines; begun with the lock held
	mu         sync.Mutex     // guards all below, and all parts; before the journal's
	closed     bool
	opened     uint64        // the mark of what the first call has corrected; 0 in a step that does not wait for that
	correcting chan struct{} // closed when the times of all rows have been corrected; nil if they are not being
}

// begin takes the lock for a step, with the time of its call. After an error it has not
// taken it.
func (s *steps) begin(ctx context.Context, now time.Time) error {
	first := false // this call, or a call that it waits for, is the first one
	for {
		if ctx.Err() != nil { // the caller does not wait for it
			return gaveUp(ctx, "nothing was done")
		}
		s.mu.Lock()
		if err := s.usable(); err != nil {
			s.mu.Unlock()
			return err
		}
		if s.correcting == nil {
			first = first || s.corrector.opening != nil && !now.IsZero()
			if rest := s.corrector.tick(now); rest != nil {
				s.correcting = make(chan struct{})
				s.reading.Add(1)
				go s.correctRest(rest, s.journal.Seal())
			}
		}
		corrected := s.correcting
		if corrected == nil {
			s.passes.begin()
			s.opened = 0
			if first {
				s.opened = s.journal.Mark()
			}
			return nil
		}
		first = true
		s.mu.Unlock()
		select {
		case <-corrected:
		case <-ctx.Done():
		case <-s.stalled():
			return s.unavailable("nothing was done")
		}
	}
}

// beginChange is begin for a step that may be refused while the rows take no more: then
// nothing is half done.
func (s *steps) beginChange(ctx context.Context, now time.Time) error {
	select {
	case <-s.stalled():
		return s.unavailable("the call was refused")
	default:
		return s.begin(ctx, now)
	}
}

// usable returns why no step can be made. The caller holds the lock.
func (s *steps) usable() error {
	if s.closed {
		return queue.ErrClosed
	}
	return s.journal.Failed()
}

// end ends a step: it gives up the lock, and returns when what has been written is
// durable, when ctx ends, or when the rows take no more.
func (s *steps) end(ctx context.Context) error {
	err := s.endAt(ctx.Done(), s.stalled())
	switch {
	case errors.Is(err, journal.ErrLeft):
		return gaveUp(ctx, "what was decided may not be durable yet")
	case errors.Is(err, journal.ErrStalled):
		return s.unavailable("what was decided is done when there is room, unless this process ends before")
	default:
		return err
	}
}

// endAt is end, with ErrLeft of the journal when leave is closed, and with ErrStalled
// when stalled is.
func (s *steps) endAt(leave, stalled <-chan struct{}) error {
	mark, over := s.seal(), s.leaseLog.take()
	s.mu.Unlock()
	err := s.journal.Sync(mark, leave, stalled)
	if err == nil {
		s.leaseLog.free(over)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaseLog.putBack(over)
	return err
}

// stalled returns a channel that is closed while the rows take no more.
func (s *steps) stalled() <-chan struct{} {
	if s.cfg.Stalled == nil {
		return nil
	}
	return s.cfg.Stalled()
}

// unavailable returns the error of a call while the rows take no more.
func (s *steps) unavailable(what string) error {
	if err := s.cfg.Room(); err != nil {
		return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, what, err)
	}
	return fmt.Errorf("%w: %s, because there was no room; there is some again", queue.ErrUnavailable, what)
}

// lockOpen takes the lock to read. After an error it has not taken it.
func (s *steps) lockOpen() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	s.keyRates.unblock()
	return nil
}

// lockCorrected takes the lock when no times are being corrected.
func (s *steps) lockCorrected() {
	for s.mu.Lock(); s.correcting != nil; s.mu.Lock() {
		corrected := s.correcting
		s.mu.Unlock()
		<-corrected
	}
}

// correctRest makes the parts of a correction behind the first one, which is durable from
// a mark on. It gives up the lock while a part is written, as a full disk may keep it for
// long. Steps wait until all times are corrected, because they would meet times of two
// clocks; reads do not.
func (s *steps) correctRest(rest *setBack, mark uint64) {
	defer s.reading.Done()
	for complete := false; !complete; {
		_ = s.journal.Sync(mark, nil, nil) // setBackPart ends after an error
		s.mu.Lock()
		if complete = s.corrector.setBackPart(rest); complete {
			close(s.correcting)
			s.correcting = nil
		}
		mark = s.journal.Seal()
		s.mu.Unlock()
	}
}

// seal completes a step: it makes the visits that the step may make, leaves the rest
// to drain, and records what an opened store could not derive. It returns the
// journal's mark.
func (s *steps) seal() uint64 {
	s.passes.advance()
	start := s.passes.leave()
	s.cascades.recordAll()
	if start && !s.closed && s.journal.Failed() == nil {
		s.passes.draining = true
		s.reading.Add(1)
		go s.drain()
	}
	return s.journal.Seal()
}

// drain completes all passes, a bounded part of them in each step. It ends when there
// are none left, when the machine is closed, or when rows cannot be written.
func (s *steps) drain() {
	defer s.reading.Done()
	for {
		s.lockCorrected()
		if len(s.passes.queued) == 0 || s.closed || s.journal.Failed() != nil {
			s.passes.draining = false
			s.mu.Unlock()
			return
		}
		s.passes.begin()
		s.passes.drainStep()
		_ = s.endAt(nil, nil) // an error stays in the journal, and ends the loop
		time.Sleep(drainPause)
	}
}

// gaveUp returns the error of a caller that waits no longer.
func gaveUp(ctx context.Context, done string) error {
	err := fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, done, ctx.Err())
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
