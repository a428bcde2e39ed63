package sched

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Outcome is how a call ends, and what waits for that: goroutines, teardowns, and calls that
// continue it.
type Outcome struct {
	task Task // the context of the function
}

// The status of a call settles by one compare-and-swap from pending, which
// fails if it has been announced that the extra matters.
const (
	callPending  = 0
	callSettled  = 1 << 0 // with a value, or
	callFailed   = 1 << 1 // with the error in extra
	callObserved = 1 << 2 // the extra has teardowns, or a goroutine waits there
	callNested   = 1 << 3 // it is no call but a task that was entered within another function
	callByHand   = 1 << 4 // it has no function and is settled by hand,
	callClaimed  = 1 << 5 // by the caller that has set this
)

// Init prepares that of a call of a context.
func (o *Outcome) Init(ctx context.Context, e *Engine) {
	o.task.parent = ctx //nolint:fatcontext // a call is made with it
	o.task.x = &e.plain
}

// Engine is that of the call.
func (o *Outcome) Engine() *Engine { return o.task.engine() }

// Wait waits until the call has settled or ctx ends, and reports whether it has settled.
// The function that waits lends its slots.
func (o *Outcome) Wait(ctx context.Context) bool {
	if o.Settled() {
		return true
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

// Done is closed when the call has settled.
func (o *Outcome) Done() <-chan struct{} {
	x := o.task.ensure()
	if o.observe() {
		x.wake()
	}
	return x.done
}

// watch has settle look at the extra, and reports whether the call has settled before.
func (o *Outcome) observe() (late bool) {
	return o.task.status.Or(callObserved)&(callSettled|callFailed) != 0
}

// Teardown has fn called exactly once when the call has an outcome; at once if it has.
func (o *Outcome) Teardown(fn func()) {
	x := o.task.ensure()
	if o.observe() || !x.teardowns.add(fn) {
		fn()
	}
}

// After has fn, which is not the user's, called when the outcome can be seen.
func (o *Outcome) After(fn func()) {
	x := o.task.ensure()
	if o.observe() || !x.followers.add(fn) {
		fn()
	}
}

// Settled reports whether the call has an outcome.
func (o *Outcome) Settled() bool { return o.task.status.Load()&(callSettled|callFailed) != 0 }

// Err is the error of a call that has settled.
func (o *Outcome) Err() error {
	if o.task.status.Load()&callFailed != 0 {
		return o.task.extra.Load().err
	}
	return nil
}

// settle runs the teardowns, publishes the outcome and wakes those who wait.
func (o *Outcome) settle() {
	x := o.task.extra.Load()
	if x == nil {
		if o.task.status.CompareAndSwap(callPending, callSettled) {
			return
		}
		x = o.task.extra.Load()
	}
	// All are deferred, so that a teardown which ends the goroutine ends nothing
	// else: the last registered one is called first, and publish last.
	defer o.publish(x)
	for _, fn := range x.teardowns.take() {
		defer o.Engine().cfg.guarded(fn, &x.err)
	}
}

func (o *Outcome) publish(x *extra) {
	if x.err != nil {
		o.task.status.Or(callFailed)
	} else {
		o.task.status.Or(callSettled)
	}
	x.wake()
	for _, fn := range slices.Backward(x.followers.take()) {
		defer fn() // as a teardown of what it settles may end the goroutine
	}
}

// refuse settles a call whose function is not called, with err or, if that is nil, with the value
// that it has.
func (o *Outcome) refuse(err error) {
	o.task.state.Store(taskEnded)
	o.task.ensure().err = err
	o.task.stop()
	o.settle()
}

// hooks are functions to be called once, by the one who takes them.
type hooks struct {
	mu    sync.Mutex
	fns   []func()
	taken bool
}

// add registers fn, or reports that it is too late.
func (h *hooks) add(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return false
	}
	h.fns = append(h.fns, fn)
	return true
}

func (h *hooks) take() []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	fns := h.fns
	h.fns, h.taken = nil, true
	return fns
}

// guarded calls fn and adds to err what it panics with.
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
