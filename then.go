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
	next := &Future[U]{task: task{parent: ctx, c: s.c.made()}}
	next.fn = func(ctx context.Context) (U, error) { return fn(ctx, f.value) }
	x := next.task.ensure()
	x.source = f.Cancel
	stop := context.AfterFunc(ctx, func() { next.Cancel(context.Cause(ctx)) })
	next.Teardown(func() { stop() })
	f.follow(func() {
		_, err := f.outcome()
		next.begin(s, err)
	})
	return next
}

// begin submits a continuation, unless what it continues has failed or it has
// been cancelled.
func (f *Future[T]) begin(s Scheduler, err error) {
	x := f.task.extra.Load()
	if err == nil && f.task.Err() != nil {
		err = context.Cause(&f.task)
	}
	if err == nil {
		err = s.c.submit(f.task.parent, s, arrival{job: f, continues: true})
	}
	if err != nil {
		f.refuse(err)
		return
	}
	x.begun.Store(true)
	if f.task.Err() != nil { // cancelled meanwhile, by somebody who may have come too early to withdraw it
		f.withdraw(context.Cause(&f.task))
	}
}

// cancelChain cancels a continuation and what it continues. The context comes
// first: see begin.
func (f *Future[T]) cancelChain(x *extra, cause error) {
	f.task.cancel(cause)
	x.source(cause)
	f.withdraw(cause)
}
