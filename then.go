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
