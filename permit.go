package stint

import "github.com/stintgo/stint/internal/sched"

// Permit is the right to the slots that [Scheduler.Acquire] or [Scheduler.TryAcquire]
// took, as many as the weight and on behalf of the key, until Release releases them. The
// zero Permit has none.
//
// It is a small value and costs no allocation. Keep it in one place and release it once:
// a copy stands for the same slots. A Permit may be released by a different goroutine
// than the one that acquired it, but not by two at once.
type Permit struct{ p sched.Permit }

// Release releases the slots, which go to the next entries that wait. It may wait a few
// instructions for the scheduler's lock. With shared slots it may also wait for teardowns of
// queued functions for which the slots return an error; it waits for nothing else.
//
// To release a Permit twice, or the zero Permit, is a bug of the caller, and Release
// panics. It finds the second release of a copy at once if the slots have a key or a
// weight, are shared or are tracked. Copies of a permit for one slot without a key are
// only counted, so an excess release is found when no slot is in use. If another
// goroutine releases at the same moment, that panic may occur in a goroutine of its own
// and end the process.
func (p *Permit) Release() { p.p.Release() }
