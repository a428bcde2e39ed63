package stint

import (
	"context"
	"iter"
)

// Map calls fn for each input on a slot of s and yields the outcomes in the
// order of the inputs, each as soon as it and all before it are known. For each
// slot at most two inputs are in flight, that is taken and their outcomes not yet
// yielded. So the inputs may be infinite.
//
// A separate goroutine calls inputs, as far as there is room for the calls: data that
// inputs shares with the body of the range needs a lock. Leaving the range early cancels
// the contexts of the calls in flight and waits for them. If ctx ends, the range yields
// one more outcome, the zero value and the context's cause, and ends. If the scheduler is
// closed, the range ends with the outcome of the first input that was refused, [ErrClosed].
// In each of these cases inputs is stopped when it yields its next input, for which fn is not
// called; the range does not wait for that, because it may take long.
//
// A panic in fn is yielded as a [*PanicError]; a panic in inputs continues in the
// goroutine of the range, with a [*PanicError] as its value, which has the stack of inputs.
// After the range has been left, only [Config.OnPanic] receives these panics.
//
// A function that ranges suspends its slot while it waits; see [Scheduler].
func Map[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	s.made()
	return func(yield func(Out, error) bool) { newMapping(ctx, s, fn, false).yieldAll(inputs, yield) }
}

// MapUnordered is [Map], but yields each outcome as soon as it is known. So later inputs
// may depend on earlier outcomes.
func MapUnordered[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	s.made()
	return func(yield func(Out, error) bool) { newMapping(ctx, s, fn, true).yieldAll(inputs, yield) }
}
