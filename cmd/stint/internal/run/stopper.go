package run

import (
	"context"
	"errors"
	"sync"
	"syscall"
)

// stopper holds why a run stops before its inputs end, and whether running jobs end too.
// It is safe for concurrent use.
type stopper struct {
	// starting ends when no more jobs may start.
	starting context.Context //nolint:containedctx // a state of the run, not of a call
	noMore   context.CancelCauseFunc
	// ending ends when running jobs must end too.
	ending    context.Context //nolint:containedctx // likewise
	endThem   context.CancelCauseFunc
	mu        sync.Mutex
	err       error          // the first failure; guarded by mu
	signal    syscall.Signal // the first signal; guarded by mu
	signals   int            // guarded by mu
	endSignal syscall.Signal // sent to end the jobs; guarded by mu
}

var errHalted = errors.New("the halt rule is met")

func newStopper() *stopper {
	s := &stopper{}
	s.starting, s.noMore = context.WithCancelCause(context.Background())
	s.ending, s.endThem = context.WithCancelCause(context.Background())
	return s
}

// fail ends the run because of an error of the run itself. A nil error has no effect.
func (s *stopper) fail(err error) {
	if err == nil || s.starting.Err() != nil && errors.Is(err, context.Cause(s.starting)) {
		return
	}
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.end(syscall.SIGTERM, err)
}

// interrupt ends the run because of a signal to this process, and returns how many signals
// there have been.
func (s *stopper) interrupt(sig syscall.Signal) (signals int) {
	s.mu.Lock()
	if s.signals++; s.signals == 1 {
		s.signal = sig
	}
	signals = s.signals
	s.mu.Unlock()
	s.end(sig, errors.New(sig.String()))
	return signals
}

// drain starts no more jobs; running jobs continue.
func (s *stopper) drain(cause error) { s.noMore(cause) }

// end starts no more jobs, and ends running jobs with sig.
func (s *stopper) end(sig syscall.Signal, cause error) {
	s.mu.Lock()
	if s.endSignal == 0 {
		s.endSignal = sig
	}
	s.mu.Unlock()
	s.noMore(cause)
	s.endThem(cause)
}

// why returns the signal and the error that ended the run, if any.
func (s *stopper) why() (syscall.Signal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signal, s.err
}

func (s *stopper) jobSignal() syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endSignal
}
