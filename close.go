package stint

import (
	"context"
	"slices"
)

// Drain takes nothing new, lets everything that is queued or running finish,
// and closes the scheduler. If ctx ends first, it closes the scheduler by force,
// as Close does, and returns the context's cause.
//
// Drain returns when the outcomes of all that were accepted are published, and
// their teardowns have been called. Work that a running function calls with
// [Run] still runs. While the scheduler is paused, what is queued waits, and so
// does Drain. Do not call Drain
// within a function that runs on the scheduler: it waits for that function.
func (s Scheduler) Drain(ctx context.Context) error {
	c := s.c.made()
	c.lock()
	c.closed = true
	c.inbox.setShut(true)
	c.empty(allTiers)
	c.refuseDoor(closed)
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.dispatchAndUnlock(0, false)
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		s.Close()
		return context.Cause(ctx)
	}
}

// Close closes the scheduler at once and does not wait: whatever is queued is
// answered [ErrClosed], and so is every later call; the contexts of running
// functions end with that cause. Slots that are held are released as usual.
// Closing again does nothing.
func (s Scheduler) Close() {
	c := s.c.made()
	c.lock()
	c.closed = true
	c.inbox.setShut(true)
	c.empty(allTiers)
	c.killed.Store(true)
	c.refuseAll(closed)
	c.refuseDoor(closed)
	running := c.live
	c.live = make(map[*task]struct{})
	c.dispatchAndUnlock(0, false)
	for t := range running {
		t.cancel(ErrClosed)
	}
}

// refuseDoor refuses the submitters that wait for room in a bounded queue and
// for which why gives an error.
func (c *core) refuseDoor(why func(*entry) error) {
	if c.door == nil {
		return
	}
	for _, e := range slices.Backward(c.door.Entries()) { // the last first, or they are charged to their keys
		if err := why(e); err != nil {
			c.door.Remove(e)
			e.Value.err = err
			c.granted.append(e)
		}
	}
}

func closed(*entry) error { return ErrClosed }

// clear refuses all that is queued and returns how many entries that were.
func (c *core) clear(cause error) int {
	c.lockAll()
	n := c.refuseAll(func(*entry) error { return cause })
	c.dispatchAndUnlock(0, false)
	return n
}
