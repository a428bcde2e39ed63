package stint

import "context"

// Drain takes nothing new, lets everything that is queued or running finish,
// and closes the scheduler. If ctx ends first, it closes the scheduler by force,
// as Close does, and returns the context's cause.
//
// Drain returns when the outcomes of all that were accepted are published, and
// their teardowns have been called. Work that a running function calls with
// [Run] still runs. While the scheduler is paused, what is queued waits, and so
// does Drain. Do not call Drain
// within a function that runs on the scheduler: it waits for that function.
func (s Scheduler) Drain(ctx context.Context) error { return s.made().Drain(ctx) }

// Close closes the scheduler at once and does not wait: whatever is queued is
// answered [ErrClosed], and so is every later call; the contexts of running
// functions end with that cause. Slots that are held are released as usual.
// Closing again does nothing.
func (s Scheduler) Close() { s.made().Close() }
