package sched

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Call is a function that runs on slots in a goroutine of its own, and the meeting point of
// those who wait for its outcome. It is part of the Job that has the function.
type Call struct {
	task  Task   // the context of the function
	place uint64 // where it waits, if that is a fifo: the tier, and the place in it
}

// The status of a call settles by one compare-and-swap from pending, which
// fails if it has been announced that the extra matters.
const (
	callPending = 0
	callSettled = 1 << 0 // with a value, or
	callFailed  = 1 << 1 // with the error in extra
	callWatched = 1 << 2 // the extra has teardowns, or a goroutine waits there
	callNested  = 1 << 3 // it is no call but a task that was entered within another function
	callByHand  = 1 << 4 // it has no function and is settled by hand,
	callClaimed = 1 << 5 // by the caller that has set this
)

// Init prepares a call of a context.
func (c *Call) Init(ctx context.Context, e *Engine) {
	c.task.parent = ctx //nolint:fatcontext // a call is made with it
	c.task.x = &e.plain
}

func (c *Call) call() *Call { return c }

// Engine is that of the call.
func (c *Call) Engine() *Engine { return c.task.engine() }

// Go submits job, which the call is part of.
func (c *Call) Go(job Job, a Ask) {
	if err := c.submit(job, a, false); err != nil {
		c.give(job, err)
	}
}

// TryGo starts job, which the call is part of, if that needs no waiting.
func (c *Call) TryGo(job Job, a Ask) bool {
	if c.task.parent.Err() != nil {
		return false
	}
	e := c.Engine()
	e.lock()
	if tried := (&arrival{Ask: a, job: job}); tried.try(e) {
		return true
	}
	e.unlock()
	return false
}

func (c *Call) submit(job Job, a Ask, continues bool) error {
	e, ctx := c.Engine(), c.task.parent
	w, err := e.watchFor(ctx)
	if err != nil {
		return err
	}
	return e.submit(ctx, arrival{Ask: a, job: job, watch: w, continues: continues})
}

// Follow has job, which the call is part of, submitted when before has a value. If that fails, so
// does the call. The end of its context, or its cancellation, cancels before too.
func (c *Call) Follow(job Job, a Ask, before *Call) {
	c.follow(before, func() {
		if err := before.Err(); err != nil {
			c.give(job, err)
			return
		}
		c.begin(job, a)
	})
}

// FollowFailure is Follow for a job that is submitted when before fails. If that has a value, pass
// makes it the value of the call.
func (c *Call) FollowFailure(job Job, a Ask, before *Call, pass func()) {
	c.follow(before, func() {
		switch err := c.task.cancelled(); {
		case err != nil:
			c.give(job, err)
		case before.Err() != nil:
			c.begin(job, a)
		default:
			pass()
			c.give(job, nil)
		}
	})
}

// follow has then called when before has settled.
func (c *Call) follow(before *Call, then func()) {
	x := c.task.ensure()
	x.source, x.engine = before.Cancel, c.task.x.e
	ctx := c.task.parent
	stop := context.AfterFunc(ctx, func() { c.Cancel(context.Cause(ctx)) })
	c.Teardown(func() { stop() })
	before.After(then)
}

// begin submits a call that continues another, unless this has been cancelled.
func (c *Call) begin(job Job, a Ask) {
	err := c.task.ending()
	if err == nil {
		err = c.submit(job, a, true)
	}
	if err != nil {
		c.give(job, err)
		return
	}
	c.task.extra.Load().begun.Store(true)
	if c.task.Err() != nil { // cancelled meanwhile, perhaps too early to be withdrawn
		c.withdraw(context.Cause(&c.task))
	}
}

// give settles a call whose job will not run, with err or with the value that it has.
func (c *Call) give(job Job, err error) {
	job.Forget()
	c.refuse(err)
}

// Wait waits until the call has settled or ctx ends, and reports whether it has settled.
// The function that waits lends its slots.
func (c *Call) Wait(ctx context.Context) bool {
	if c.Settled() {
		return true
	}
	lent := Lend(ctx)
	defer lent.Reclaim()
	select {
	case <-c.Done():
		return true
	case <-ctx.Done():
		return c.Settled()
	}
}

// Done is closed when the call has settled.
func (c *Call) Done() <-chan struct{} {
	x := c.task.ensure()
	if c.watch() {
		x.wake()
	}
	return x.done
}

// watch has settle look at the extra, and reports whether the call has settled before.
func (c *Call) watch() (late bool) {
	return c.task.status.Or(callWatched)&(callSettled|callFailed) != 0
}

// Cancel ends the context of a function that runs, and takes one that waits out of the queue. A
// call without a function settles with the cause.
func (c *Call) Cancel(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	switch x := c.task.extra.Load(); {
	case c.Settled():
	case c.ByHand():
		if c.Claim() {
			c.Settle(cause)
		}
	case x != nil && x.source != nil: // the context first: see begin
		c.task.cancel(cause)
		x.source(cause)
		c.withdraw(cause)
	case !c.withdraw(cause):
		c.task.cancel(cause)
	}
}

// withdraw takes a function out of the queue and reports whether it was there.
func (c *Call) withdraw(cause error) bool {
	e := c.Engine()
	e.lock()
	p, ok := c.waiting()
	if !ok {
		e.unlock()
		return false
	}
	e.refuse(p, cause)
	e.dispatchAndUnlock(0, false)
	return true
}

// waiting returns the piece that a call is which waits in the queue. The lock is held.
func (c *Call) waiting() (p piece, ok bool) {
	if more := c.task.extra.Load(); more != nil && more.source != nil && !more.begun.Load() {
		return p, false // and begin may be about to say where it is
	}
	e := c.Engine()
	if x := c.task.x; x != &e.plain {
		// An entry is used again: it may be another job's by now. Only while it
		// waits does the lock guard what is in it.
		if x.waits && x.job != nil && x.job.call() == c {
			return e.queue.entered(x), true
		}
		return p, false
	}
	tier, place := int(c.place>>tierShift), c.place&(1<<tierShift-1)
	r := &e.queue.runs[tier]
	if it := r.at(place); it == nil || it.job.call() != c {
		return p, false
	}
	return r.piece(tier, place), true
}

// Teardown has fn called exactly once when the call has an outcome; at once if it has.
func (c *Call) Teardown(fn func()) {
	x := c.task.ensure()
	if c.watch() || !x.teardowns.add(fn) {
		fn()
	}
}

// After has fn, which is not the user's, called when the outcome can be seen.
func (c *Call) After(fn func()) {
	x := c.task.ensure()
	if c.watch() || !x.followers.add(fn) {
		fn()
	}
}

// Settled reports whether the call has an outcome.
func (c *Call) Settled() bool { return c.task.status.Load()&(callSettled|callFailed) != 0 }

// Err is the error of a call that has settled.
func (c *Call) Err() error {
	if c.task.status.Load()&callFailed != 0 {
		return c.task.extra.Load().err
	}
	return nil
}

// run calls the function, unless its context has ended since it was given a slot.
func (c *Call) run(w *worker) {
	w.runs, w.hold, w.task = true, &c.task.Hold, &c.task
	if w.e.cfg.Slots != nil {
		w.e.shared.bind(w.job.x, &c.task)
	}
	var err error
	returned := false
	defer func() {
		if !returned {
			err = w.e.cfg.Caught(recover())
		}
		if err != nil {
			c.task.ensure().err = err
		}
		if !returned {
			w.e.cfg.Report(err)
		}
	}()
	if err = c.task.ending(); err == nil {
		err = w.job.Do(&c.task)
	} else {
		w.job.Forget()
	}
	returned = true
}

// settle runs the teardowns, publishes the outcome and wakes those who wait.
func (c *Call) settle() {
	x := c.task.extra.Load()
	if x == nil {
		if c.task.status.CompareAndSwap(callPending, callSettled) {
			return
		}
		x = c.task.extra.Load()
	}
	// All are deferred, so that a teardown which ends the goroutine ends nothing
	// else: the last registered one is called first, and publish last.
	defer c.publish(x)
	for _, fn := range x.teardowns.take() {
		defer c.Engine().cfg.guarded(fn, &x.err)
	}
}

func (c *Call) publish(x *extra) {
	if x.err != nil {
		c.task.status.Or(callFailed)
	} else {
		c.task.status.Or(callSettled)
	}
	x.wake()
	for _, fn := range slices.Backward(x.followers.take()) {
		defer fn() // as a teardown of what it settles may end the goroutine
	}
}

// refuse settles a call whose function is not called, with err or, if that is nil, with the value
// that it has.
func (c *Call) refuse(err error) {
	c.task.state.Store(taskEnded)
	c.task.ensure().err = err
	c.task.stop()
	c.settle()
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
