package queue

import (
	"context"
	"sync/atomic"
)

// stoppable is the context of a handler, which ends with its parent or by cancel.
//
// Handlers of small tasks seldom use their context. A context that can be cancelled, with
// its channel and its registration in the parent, costs ten allocations and three locks
// that all runners share. So it is created by the first call of Done, or when the handler
// is stopped.
type stoppable struct {
	// The parent is the context of the slot. It ends when the handler has returned, so its
	// child need not be cancelled.
	context.Context //nolint:containedctx // the parent of own

	own atomic.Pointer[ownContext] // nil until it is created
}

// ownContext is a child of the parent.
type ownContext struct {
	context.Context //nolint:containedctx // own exists

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

// Done is as [context.Context] says.
func (s *stoppable) Done() <-chan struct{} { return s.ensure().Done() }

// Err is as [context.Context] says.
func (s *stoppable) Err() error {
	if own := s.own.Load(); own != nil {
		return own.Err()
	}
	if s.Context.Err() == nil {
		return nil
	}
	return s.ensure().Err() // otherwise Err could return nil again, if own is created at this moment
}

// Value is as [context.Context] says. [context.Cause] finds the cause by it.
func (s *stoppable) Value(key any) any {
	if own := s.own.Load(); own != nil {
		return own.Value(key)
	}
	return s.Context.Value(key)
}
