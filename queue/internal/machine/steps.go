package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// steps is the lock of the machine, and the beginning and the end of each call: one step
// under the lock, which decides, changes the memory, and writes rows to the journal;
// then, without the lock, a wait until the rows are durable. A step does a bounded
// amount of work. The goroutine drain completes the scans that steps have left, in its
// own steps.
//
// begin and its variants lock mu; end and endAt unlock it. Lock order: mu, then the
// lock of the journal, which the journal's methods take themselves.
type steps struct {
	cascades  *cascades
	cfg       *Config
	corrector *corrector
	journal   *journal.Journal
	keyRates  *keyRates
	leaseLog  *leaseLog
	scans     *scans

	using      sync.WaitGroup // calls and goroutines that use the rows without mu; Add is called with mu held
	mu         sync.Mutex     // guards the fields below and all parts of the machine
	closed     atomic.Bool    // set with mu held
	opened     uint64         // the mark of the corrections of the first call, in a step that has to wait for them; else 0
	correcting chan struct{}  // closed when the times of all rows have been corrected; nil if no correction is under way
}

// begin locks mu for a step at time now, unless it returns an error. It first waits for a
// correction of times that is under way.
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
				s.using.Add(1)
				go s.correctRest(rest, s.journal.Seal())
			}
		}
		corrected := s.correcting
		if corrected == nil {
			s.scans.begin()
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

// beginChange is begin for a step that is refused while the rows take no more changes, so
// that its caller knows that nothing was done.
func (s *steps) beginChange(ctx context.Context, now time.Time) error {
	select {
	case <-s.stalled():
		return s.unavailable("the call was refused")
	default:
		return s.begin(ctx, now)
	}
}

// usable returns why no step can be made, or nil. The caller must hold mu.
func (s *steps) usable() error {
	if s.closed.Load() {
		return queue.ErrClosed
	}
	return s.journal.Failed()
}

// end ends a step: it unlocks mu, and blocks until the changes of the step are durable,
// ctx ends, or the rows take no more changes.
func (s *steps) end(ctx context.Context) error {
	err := s.endAt(ctx.Done(), s.stalled())
	switch {
	case errors.Is(err, journal.ErrLeft):
		return gaveUp(ctx, "what was decided may not be durable yet")
	case errors.Is(err, journal.ErrStalled):
		return s.unavailable(decided)
	default:
		return err
	}
}

// durable blocks until the changes of all steps so far are durable, ctx ends, or the rows
// take no more changes.
func (s *steps) durable(ctx context.Context) error {
	if err := s.lockOpen(); err != nil {
		return err
	}
	mark := s.journal.Mark() // of a complete step, since no step is under way
	s.mu.Unlock()
	switch err := s.journal.Sync(mark, ctx.Done(), s.stalled()); {
	case errors.Is(err, journal.ErrLeft):
		return gaveUp(ctx, notDurable)
	case errors.Is(err, journal.ErrStalled):
		return s.unavailable(notDurable)
	default:
		return err
	}
}

// notDurable is what a read of durable state says of what it has found.
const notDurable = "what was found may not be durable yet"

// decided is what has become of a change while the rows take no more.
const decided = "the change is decided, and is written when that is possible, unless the process that decided it " +
	"ends before"

// endAt is end with channels instead of a context: it returns journal.ErrLeft when
// leave is closed, and journal.ErrStalled when stalled is closed.
func (s *steps) endAt(leave, stalled <-chan struct{}) error {
	mark, ended := s.seal(), s.leaseLog.take()
	s.mu.Unlock()
	err := s.journal.Sync(mark, leave, stalled)
	if err == nil {
		s.leaseLog.free(ended)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaseLog.putBack(ended)
	return err
}

// stalled returns a channel that is closed while the rows take no more changes.
func (s *steps) stalled() <-chan struct{} {
	if s.cfg.Stalled == nil {
		return nil
	}
	return s.cfg.Stalled()
}

// unavailable returns the error of a call while the rows take no more changes. what says
// how far the call has come.
func (s *steps) unavailable(what string) error {
	if err := s.cfg.Room(); err != nil {
		return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, what, err)
	}
	return fmt.Errorf("%w: %s, because there was no room; there is some again", queue.ErrUnavailable, what)
}

// lockOpen locks mu to read, unless it returns an error.
func (s *steps) lockOpen() error {
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	s.keyRates.unblock()
	return nil
}

// lockCorrected locks mu when no correction of times is under way.
func (s *steps) lockCorrected() {
	for s.mu.Lock(); s.correcting != nil; s.mu.Lock() {
		corrected := s.correcting
		s.mu.Unlock()
		<-corrected
	}
}

// correctRest makes all parts of a correction but the first one, whose mark is mark. It
// unlocks mu while a part is being written, because a full disk may block it for long.
// Steps wait until all times are corrected, because otherwise they would use times of two
// clocks; reads do not wait.
func (s *steps) correctRest(rest *setBack, mark uint64) {
	defer s.using.Done()
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

// seal completes a step: it makes the visits that the step may still make, leaves the
// rest to drain, writes the rows of cascades that are not complete, and seals the
// changes in the journal. It returns their mark.
func (s *steps) seal() uint64 {
	s.scans.advance()
	start := s.scans.leave()
	s.cascades.recordAll()
	if start && !s.closed.Load() && s.journal.Failed() == nil {
		s.scans.draining = true
		s.using.Add(1)
		go s.drain()
	}
	return s.journal.Seal()
}

// drain completes all queued scans, a bounded number of visits in each step. It ends when
// no scan is left, when the machine is closed, or when rows cannot be written.
func (s *steps) drain() {
	defer s.using.Done()
	for {
		s.lockCorrected()
		if len(s.scans.queued) == 0 || s.closed.Load() || s.journal.Failed() != nil {
			s.scans.draining = false
			s.mu.Unlock()
			return
		}
		s.scans.begin()
		s.scans.drainStep()
		_ = s.endAt(nil, nil) // an error stays in the journal, and ends the loop
		time.Sleep(drainPause)
	}
}

// gaveUp returns the error of a call whose context has ended. done says how far the call
// has come.
func gaveUp(ctx context.Context, done string) error {
	err := fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, done, ctx.Err())
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
