package stint

import "context"

// Then has fn run on a slot of s when f has a value, and returns the future of
// what fn makes of it. If f fails, fn is not called and the returned future
// fails with the same error. Cancelling the returned future, or the end of ctx,
// cancels f too, if it has no outcome yet.
//
// A continuation takes its place in a bounded queue even if that is full: it
// is part of work that has been accepted. A scheduler that drains takes none:
// it waits for what is queued or runs, not for what that may lead to.
func Then[T, U any](
	ctx context.Context, s Scheduler, f *Future[T], fn func(context.Context, T) (U, error),
) *Future[U] {
	next := &Future[U]{call[U]{fn: func(ctx context.Context) (U, error) { return fn(ctx, f.call.value) }}}
	next.call.Init(ctx, s.made())
	next.call.Follow(&next.call, s.ask(s.tierFor(ctx)), &f.call.Call)
	return next
}

// Catch has fn run on a slot of s when f fails, with the error of f, and returns the future
// of what fn makes of it: a value in its place, or another error. If f has a value, the
// returned future has it too, without a slot; that needs no room in s, and s may be closed.
//
// Cancelling the returned future, or the end of ctx, cancels f too, if it has no outcome
// yet. Then, and if ctx has ended before the call, it is the cancellation that the returned
// future fails with, and fn is not called. A cancellation of f alone is a failure as any
// other, which fn is called for. As to queues and draining, Catch is as [Then]: if s does not
// take fn, the returned future fails with the error of that.
func Catch[T any](
	ctx context.Context, s Scheduler, f *Future[T], fn func(context.Context, error) (T, error),
) *Future[T] {
	next := &Future[T]{call[T]{fn: func(ctx context.Context) (T, error) { return fn(ctx, f.call.Err()) }}}
	next.call.Init(ctx, s.made())
	next.call.FollowFailure(&next.call, s.ask(s.tierFor(ctx)), &f.call.Call, func() { next.call.value = f.call.value })
	return next
}
