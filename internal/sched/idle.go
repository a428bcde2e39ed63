package sched

import "context"

// idling is the set of calls that wait for an engine to be idle. The engine's lock guards
// it.
type idling struct {
	ended chan struct{} // closed when the engine is idle; nil if no call waits
	calls int           // waiting calls
}

// awaited reports whether a call waits. While one does, the gate sends every end of work
// to the path with the lock.
func (i *idling) awaited() bool { return i.ended != nil }

// notice ends the waits of all calls.
func (i *idling) notice() {
	close(i.ended)
	*i = idling{}
}

// wait waits until e is idle and reports whether e was before ctx ended. It is called
// with the lock held and returns without it.
func (i *idling) wait(ctx context.Context, e *Engine) bool {
	if i.ended == nil {
		i.ended = make(chan struct{})
	}
	i.calls++
	ended := i.ended
	e.dispatchAndUnlock(0, false)
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	e.lock()
	idle := i.ended != ended
	if !idle {
		i.calls--
		if i.calls == 0 {
			i.ended = nil
		}
	}
	e.dispatchAndUnlock(0, false) // the gate may be open again
	return idle
}

// WaitIdle waits until nothing is queued and nothing runs.
func (e *Engine) WaitIdle(ctx context.Context) error {
	e.lock()
	if !e.idle.wait(ctx, e) {
		return context.Cause(ctx)
	}
	return nil
}
