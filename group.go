package stint

import (
	"context"

	"github.com/stintgo/stint/internal/sched"
)

// Group is a set of functions that run on a scheduler's slots and end
// together: the first error, or panic, cancels the context of the others, and
// Wait returns when all have ended. Make one with [NewGroup]. All methods are
// safe for concurrent use.
type Group struct{ g sched.Group }

// NewGroup returns a group whose functions get a context derived from ctx. Wait
// must be called, or the context's resources leak. If the code in between may panic
// or return early, defer a function that calls Cancel and then Wait.
func NewGroup(ctx context.Context, s Scheduler) *Group {
	g := new(Group)
	g.g.Init(ctx, s.made(), s.ask(s.tierFor(ctx)))
	return g
}

// made returns the engine's group, and panics if g was not made with [NewGroup].
func (g *Group) made() *sched.Group {
	if g == nil || !g.g.Made() {
		panic("stint: zero Group: make one with NewGroup")
	}
	return &g.g
}

// Go queues fn, to be called with the group's context when a slot is free. It
// waits only if the queue is bounded, blocks and is full. Once the group has
// failed, functions that have not started are not called. Go panics after Wait
// has returned. While Go waits, the function with whose context the group was made
// suspends its slot. A function of the group that calls Go keeps its own: if the queue has too
// little room for the functions that it adds, the group can wait for ever.
func (g *Group) Go(fn func(context.Context) error) { g.made().Go(fn) }

// TryGo starts fn if a slot is free for it now and no waiting entry goes first, and
// reports whether it did. Otherwise, or if the group has failed, fn is never called and
// the group does not change. TryGo does not wait, and panics after Wait has returned.
func (g *Group) TryGo(fn func(context.Context) error) bool { return g.made().TryGo(fn) }

// Cancel ends the group's context with a cause, nil meaning context.Canceled.
// Functions that have not started are not called, and Wait returns the cause
// unless a function failed before.
func (g *Group) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	g.made().Fail(cause)
}

// Wait waits until all functions have ended and returns the first error: the
// error of a function, or the reason why a function was not called. A panic is
// returned as a [*PanicError]. If the group was made with the context of a
// function that runs on a slot, Wait suspends that slot while it waits; see
// [Scheduler]. Do not call Wait within a function of the group: it waits for
// that function.
func (g *Group) Wait() error { return g.made().Wait() }
