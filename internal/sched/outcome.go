package sched

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Outcome is the result of a call, and what waits for it: goroutines, teardowns, and
// calls that continue it.
type Outcome struct {
	task Task // the context of the function
}

// The status of a call. One compare-and-swap from pending settles it, which fails if a
// flag says that the future state matters.
const (
	callPending  = 0
	callSettled  = 1 << 0 // with a value
	callFailed   = 1 << 1 // with the error in the future state
	callObserved = 1 << 2 // the future state has teardowns, or a goroutine waits for it
	callNested   = 1 << 3 // not a call: a task that was entered within another function
	callByHand   = 1 << 4 // it has no function and is settled by hand
	callClaimed  = 1 << 5 // the caller that set this settles it by hand
)

// Init prepares the outcome of a call with a context.
func (o *Outcome) Init(ctx context.Context, e *Engine) {
	o.task.parent = ctx //nolint:fatcontext // a call is made with it
	o.task.x = &e.plain
}

// Made reports whether the outcome has been prepared.
func (o *Outcome) Made() bool { return o.task.parent != nil }

// Engine returns the engine of the call.
func (o *Outcome) Engine() *Engine { return o.task.engine() }

// Wait waits until the call has settled or ctx ends, and reports whether it has settled.
// The function that waits suspends its slots.
func (o *Outcome) Wait(ctx context.Context) bool {
	if o.Settled() || ctx.Err() != nil {
		return o.Settled()
	}
	suspended := Suspend(ctx)
	defer suspended.Resume()
	select {
	case <-o.Done():
		return true
	case <-ctx.Done():
		return o.Settled()
	}
}

// Done returns a channel that is closed when the call has settled.
func (o *Outcome) Done() <-chan struct{} {
	x := o.task.ensure()
	if o.observe() {
		x.wake()
	}
	return x.done
}

// observe makes settle use the future state, and reports whether the call has settled
// already.
func (o *Outcome) observe() (late bool) {
	return o.task.status.Or(callObserved)&(callSettled|callFailed) != 0
}

// Teardown registers fn to be called exactly once when the call has an outcome, or calls
// it at once if the call has one.
func (o *Outcome) Teardown(fn func()) {
	x := o.task.ensure()
	if o.observe() || !x.teardowns.add(fn) {
		fn()
	}
}

// After registers fn to be called when the outcome is visible.
func (o *Outcome) After(fn Follower) {
	x := o.task.ensure()
	if o.observe() || !x.followers.add(fn) {
		(&followers{fn}).call()
	}
}

// Settled reports whether the call has an outcome.
func (o *Outcome) Settled() bool { return o.task.status.Load()&(callSettled|callFailed) != 0 }

// Err returns the error of a call that has settled.
func (o *Outcome) Err() error {
	if o.task.status.Load()&callFailed != 0 {
		return o.task.future.Load().err
	}
	return nil
}

// settle runs the teardowns, publishes the outcome, wakes the waiting goroutines and calls the
// followers.
func (o *Outcome) settle() {
	x := o.task.future.Load()
	if x == nil {
		if o.task.status.CompareAndSwap(callPending, callSettled) {
			return
		}
		x = o.task.future.Load()
	}
	var all followers
	defer all.call() // deferred, as a teardown may end the goroutine
	o.end(x, &all)
}

// end runs the teardowns, publishes the outcome, wakes the waiting goroutines, and adds the
// followers to all.
func (o *Outcome) end(x *futureState, all *followers) {
	// All are deferred, so that a teardown which ends the goroutine ends nothing else:
	// the last registered one is called first, and publish last.
	defer o.publish(x, all)
	for _, fn := range x.teardowns.take() {
		defer o.Engine().cfg.guarded(fn, &x.err)
	}
}

func (o *Outcome) publish(x *futureState, all *followers) {
	if x.err != nil {
		o.task.status.Or(callFailed)
	} else {
		o.task.status.Or(callSettled)
	}
	x.wake()
	for _, fn := range slices.Backward(x.followers.take()) {
		*all = append(*all, fn)
	}
}

// refuse settles a call whose function is not called, with err, or with the value that
// the call has if err is nil.
func (o *Outcome) refuse(err error) {
	o.abandon(err)
	o.settle()
}

// abandon is refuse without settle.
func (o *Outcome) abandon(err error) {
	o.task.state.Store(taskEnded)
	o.task.ensure().err = err
	o.task.stop()
}

// A Follower is called after an outcome has been published. It is not user code. If it ends a
// call, it returns the outcome of that, for the caller to settle, else nil.
type Follower func() *Outcome

// followers are to be called, the last one first.
type followers []Follower

// call calls the followers, settles the outcomes that they return and calls the followers of
// those. It does not recurse, because a chain of calls may be long.
func (all *followers) call() {
	if len(*all) == 0 {
		return
	}
	defer all.call() // a teardown may end the goroutine
	for len(*all) > 0 {
		last := len(*all) - 1
		fn := (*all)[last]
		(*all)[last] = nil
		*all = (*all)[:last]
		if o := fn(); o != nil {
			o.end(o.task.future.Load(), all)
		}
	}
}

// hooks are functions to be called once, by the caller of take.
type hooks[F any] struct {
	mu    sync.Mutex
	fns   []F
	taken bool
}

// add registers fn, or returns false if the hooks have been taken.
func (h *hooks[F]) add(fn F) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return false
	}
	h.fns = append(h.fns, fn)
	return true
}

func (h *hooks[F]) take() []F {
	h.mu.Lock()
	defer h.mu.Unlock()
	fns := h.fns
	h.fns, h.taken = nil, true
	return fns
}

// guarded calls fn and joins a panic of fn to err.
func (cfg *Config) guarded(fn func(), err *error) {
	returned := false
	defer func() {
		if !returned {
			failure := cfg.Caught(recover())
			*err = errors.Join(*err, failure)
			cfg.Report(failure)
		}
	}()
	fn()
	returned = true
}
