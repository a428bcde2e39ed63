package stint

import "context"

// Drain refuses new work, waits until everything that is queued or running has ended,
// and closes the scheduler. If ctx ends first, it closes the scheduler by force,
// as Close does, and returns the context's cause.
//
// When Drain returns nil, the outcomes of all accepted work are published, and its teardowns
// have been called. Work that a running function starts with its own context, by [Run], [Go],
// a [Group] or [Map], is still accepted. While the scheduler is paused, queued work waits, and
// so does Drain. Do not call Drain within a function that runs on the scheduler: it waits for
// that function.
func (s Scheduler) Drain(ctx context.Context) error { return s.made().Drain(ctx) }

// WaitIdle waits until nothing is queued and nothing runs, and returns nil; the scheduler stays
// open. If ctx ends first, it returns the context's cause. It is for tests, and for programs that
// finish one batch of work before they begin the next. While new work keeps arriving, it keeps waiting.
//
// When it returns nil, the outcomes of all work that has ended are published, and its teardowns have
// been called. It waits for queued entries, also while the scheduler is paused; for submitters that
// wait for room in the queue; for running functions, also those whose slots are suspended while they
// wait; and for slots that are held through Acquire. A continuation counts only once the future that
// it continues has settled, and then without a gap if that future's function ran on this scheduler.
// After Close, WaitIdle waits for the functions that still run.
//
// Several goroutines may call it at once, also during Drain. Do not call it within a function that
// runs on the scheduler: it waits for that function.
func (s Scheduler) WaitIdle(ctx context.Context) error { return s.made().WaitIdle(ctx) }

// Close closes the scheduler at once and does not wait for running functions: their contexts
// end with the cause [ErrClosed]. Queued entries fail with that error, and so does every later
// call. Close returns after the teardowns of queued functions. Slots that are held are released
// as usual. Closing again does nothing.
func (s Scheduler) Close() { s.made().Close() }
