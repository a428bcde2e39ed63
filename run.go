package stint

import (
	"context"
	"runtime/debug"
)

// Run waits for a slot, calls fn in the caller's goroutine and gives the slot
// back. It returns what fn returns; if fn panics, a [*PanicError]; and without
// calling fn, the errors of [Scheduler.Acquire]. If fn calls runtime.Goexit,
// the slot is given back and the caller's goroutine ends.
//
// The context that fn gets tells that it runs on a slot of s, so that a Run
// within it needs no second one; see [Scheduler] on nesting.
func Run[T any](ctx context.Context, s Scheduler, fn func(context.Context) (T, error)) (value T, err error) {
	t, parent, err := s.c.enter(ctx, s)
	if err != nil {
		return value, err
	}
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		t.exit(parent)
	}()
	value, err = fn(t)
	returned = true
	return value, err
}

// RunWith is [Run] of a function that is handed arg, so that a hot path needs
// no closure.
func RunWith[A, T any](
	ctx context.Context, s Scheduler, fn func(context.Context, A) (T, error), arg A,
) (value T, err error) {
	t, parent, err := s.c.enter(ctx, s)
	if err != nil {
		return value, err
	}
	returned := false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		t.exit(parent)
	}()
	value, err = fn(t, arg)
	returned = true
	return value, err
}

// caught makes an error of what recover returned in a function that did not
// return by itself.
func caught(value any) error {
	if value == nil {
		return ErrGoexit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// report tells the hook of a panic that nobody may wait for. The hook may panic or end the
// goroutine: what must follow is deferred.
func (c *core) report(err error) {
	if p, ok := err.(*PanicError); ok && c.cfg.OnPanic != nil { //nolint:errorlint // as [caught] returns it
		c.cfg.OnPanic(p)
	}
}

// enter gets a slot for a function that the caller runs itself, and the
// context to run it with. parent is the task to which the slot returns.
func (c *core) enter(ctx context.Context, s Scheduler) (t *task, parent *hold, err error) {
	c.made()
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	tier := s.tierFor(ctx)
	e := &c.basic
	if outer := c.holdOf(ctx); outer != nil {
		var nested bool
		if e, nested, err = c.takeNested(ctx, s, tier, outer); nested {
			parent = outer
		}
	} else if s.weight != 1 || s.key != "" || !c.takeFast(tier) {
		e, err = c.take(ctx, c.waiter(s, tier))
		if err == nil && c.slots == nil && s.weight == 1 && s.key == "" {
			c.recycleRare(e)
			e = &c.basic
		}
	}
	if err != nil {
		return nil, nil, err
	}
	t = &task{parent: ctx, c: c, hold: hold{e: e}}
	if c.slots != nil {
		c.bindGrant(e, t)
	}
	return t, parent, nil
}

// exit gives the slot back: to parent if it has lent its own, else to whoever
// is next.
func (t *task) exit(parent *hold) {
	if parent == nil {
		t.leave()
		return
	}
	c := t.c
	c.lock()
	freed := c.end(&t.hold, t.e)
	c.recycle(t.e)
	if c.lastToReturn(parent) {
		c.reclaimLocked(parent, freed)
	} else {
		c.dispatchAndUnlock(freed, freed > 0)
	}
	t.stop()
}
