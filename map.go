package stint

import (
	"context"
	"iter"
)

// Map calls fn for each input on a slot of s and yields the outcomes in the
// order of the inputs, each as soon as it is there and all before it are. At most
// two inputs for each slot are in flight, taken and their outcomes not yielded, so
// there may be inputs without end.
//
// Inputs are taken in a goroutine of their own, as there is room for their calls: what
// inputs shares with the body of the range needs a lock. Leaving the range
// early cancels the context of the calls in flight and waits for them. A range that
// ctx cuts short ends with one more outcome, the zero value and the context's cause. One whose
// scheduler is closed ends with the outcome of the first input that it refused, [ErrClosed]. In
// both cases inputs is stopped when it has the next input, which no call gets; the range
// does not wait for that, as it may be a long time coming.
//
// A panic in fn is yielded as a [*PanicError]; one in inputs goes on in the range. A
// function that ranges suspends its slot while it waits; see [Scheduler].
func Map[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	s.made()
	return func(yield func(Out, error) bool) { newMapping(ctx, s, fn, false).yieldAll(inputs, yield) }
}

// MapUnordered is [Map], but yields each outcome as soon as there is one. So inputs
// may depend on outcomes.
func MapUnordered[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	s.made()
	return func(yield func(Out, error) bool) { newMapping(ctx, s, fn, true).yieldAll(inputs, yield) }
}
