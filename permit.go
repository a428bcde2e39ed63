package stint

import "github.com/stintgo/stint/internal/sched"

// Permit is the slots that [Scheduler.Acquire] or [Scheduler.TryAcquire] took, as many as
// the weight said and on behalf of its key, until Release gives them back. The zero Permit
// has none.
//
// It is a small value and costs no allocation. Keep it in one place, where it is released
// once: a copy stands for the same slots. A Permit may be released by another goroutine
// than the one that acquired it, but not by two at once.
type Permit struct{ p sched.Permit }

// Release gives the slots back, to what is next. It does not wait for others, but for the
// few instructions that another call may just need.
//
// To release a Permit twice, or the zero one, is a bug of the caller, and Release panics. Of
// copies it finds the second release at once if the slots have a key or a weight, are shared
// or are tracked; copies of a permit for one slot without a key are only counted, so that more
// releases than permits are found when no slot is in use. At the very moment in which others
// release too, that panic may come in a goroutine of its own and end the process.
func (p *Permit) Release() { p.p.Release() }
