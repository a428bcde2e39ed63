package stint

import "context"

// Drain takes nothing new, lets everything that is queued or running finish,
// and closes the scheduler. If ctx ends first, it closes the scheduler by force,
// as Close does, and returns the context's cause.
//
// Drain returns when the outcomes of all that were accepted are published, and
// their teardowns have been called. What a running function starts with the context that it
// was given, by [Run], [Go], a [Group] or [Map], still runs. While the scheduler is paused, what
// is queued waits, and so does Drain. Do not call Drain within a function that runs on the
// scheduler: it waits for that function.
func (s Scheduler) Drain(ctx context.Context) error { return s.made().Drain(ctx) }

// WaitIdle waits until nothing is queued and nothing runs, and returns nil; the scheduler stays
// open. If ctx ends first, it returns the context's cause. It is for tests, and for programs that
// do a batch of work and then the next. Work that keeps coming keeps it waiting.
//
// As with [Scheduler.Drain], the outcomes of all that has ended are published when it returns, and teardowns
// have been called. What it waits for: entries that are queued, also while the scheduler is
// paused; submitters that wait for room in the queue; running functions, also those whose slots
// are suspended while they wait; and slots that are held through Acquire. A continuation counts from when what it
// continues has settled, without a gap if that ran on this scheduler; before that it does not. After
// Close, it waits for what still runs.
//
// It may be called by several goroutines at once, and beside Drain. Do not call it within a function
// that runs on the scheduler: it waits for that function.
func (s Scheduler) WaitIdle(ctx context.Context) error { return s.made().WaitIdle(ctx) }

// Close closes the scheduler at once and does not wait: whatever is queued is
// answered [ErrClosed], and so is every later call; the contexts of running
// functions end with that cause. Slots that are held are released as usual.
// Closing again does nothing.
func (s Scheduler) Close() { s.made().Close() }
