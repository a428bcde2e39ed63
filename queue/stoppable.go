package queue

import (
	"context"
	"sync/atomic"
)

// stoppable is the context of a handler, which ends with its parent or by cancel.
//
// Handlers of small tasks seldom ask whether they are to stop. What tells them, a
// channel, and a place in the parent for each context up to the process's, is ten
// allocations and three locks that all runners share. So it is made when it is asked
// for, or when the handler is stopped.
type stoppable struct {
	// The parent, which is that of the slot: it ends when the handler has returned, so
	// what is made here needs no end of its own.
	context.Context //nolint:containedctx // a context is made of it

	own atomic.Pointer[ownContext] // nil until it is needed
}

// ownContext is a child of the parent.
type ownContext struct {
	context.Context //nolint:containedctx // a context is made of it

	cancel context.CancelCauseFunc
}

func (s *stoppable) ensure() *ownContext {
	if own := s.own.Load(); own != nil {
		return own
	}
	own := new(ownContext)
	own.Context, own.cancel = context.WithCancelCause(s.Context)
	if !s.own.CompareAndSwap(nil, own) {
		own.cancel(nil)
		return s.own.Load()
	}
	return own
}

// cancel ends the context, from any goroutine.
func (s *stoppable) cancel(cause error) { s.ensure().cancel(cause) }

// Done is as [context.Context] says, as are the others.
func (s *stoppable) Done() <-chan struct{} { return s.ensure().Done() }

// Err is as [context.Context] says.
func (s *stoppable) Err() error {
	if own := s.own.Load(); own != nil {
		return own.Err()
	}
	if s.Context.Err() == nil {
		return nil
	}
	return s.ensure().Err() // or it could be nil again, if one is made at this moment
}

// Value is as [context.Context] says. [context.Cause] finds the cause by it.
func (s *stoppable) Value(key any) any {
	if own := s.own.Load(); own != nil {
		return own.Value(key)
	}
	return s.Context.Value(key)
}
