package stint

import "context"

// Then runs fn with the value of f on a slot of s, once f has one, and returns the
// future of fn's result. If f fails, fn is not called and the returned future
// fails with the same error. Cancelling the returned future, or the end of ctx,
// cancels f too, if f has no outcome yet.
//
// A continuation is queued even if a bounded queue is full, because it is part of
// work that has been accepted. A scheduler that drains refuses it: Drain waits for
// work that is queued or runs, not for continuations of that work.
func Then[T, U any](
	ctx context.Context, s Scheduler, f *Future[T], fn func(context.Context, T) (U, error),
) *Future[U] {
	before := f.made()
	next := &Future[U]{call[U]{fn: func(ctx context.Context) (U, error) { return fn(ctx, before.value) }}}
	next.call.Init(ctx, s.made())
	next.call.Follow(&next.call, s.ask(s.tierFor(ctx)), &before.Call)
	return next
}

// Catch runs fn with the error of f on a slot of s if f fails, and returns the future of fn's
// result: a value in place of the error, or another error. If f has a value, the returned
// future gets that value without a slot, even if s is full or closed.
//
// Cancelling the returned future, or the end of ctx, cancels f too, if f has no outcome yet.
// In that case, and if ctx has ended before the call, the returned future fails with the cause
// of the cancellation, and fn is not called. If only f is cancelled, fn is called, as for any
// other failure. For queues and draining, Catch is like [Then]: if s refuses fn, the returned
// future fails with the reason.
func Catch[T any](
	ctx context.Context, s Scheduler, f *Future[T], fn func(context.Context, error) (T, error),
) *Future[T] {
	before := f.made()
	next := &Future[T]{call[T]{fn: func(ctx context.Context) (T, error) { return fn(ctx, before.Err()) }}}
	next.call.Init(ctx, s.made())
	next.call.FollowFailure(&next.call, s.ask(s.tierFor(ctx)), &before.Call, func() { next.call.value = before.value })
	return next
}
