package stint

import (
	"sync"

	"github.com/stintgo/stint/internal/sched"
)

// Promise is a [Future] that the program settles itself, with [Promise.Resolve] or
// [Promise.Fail]. It is for outcomes that no function on a slot computes, such as the
// response that the reader of a connection passes to the request that waits for it. It
// belongs to no scheduler. Make one with [NewPromise]. All methods are safe for concurrent
// use.
//
// A promise that is never settled is garbage when nothing refers to it. A goroutine that
// waits for it waits until the context of the wait ends.
type Promise[T any] struct{ future Future[T] }

// NewPromise returns a promise that is not settled.
func NewPromise[T any]() *Promise[T] {
	p := new(Promise[T])
	p.future.call.InitByHand(noScheduler())
	return p
}

// noScheduler stands for the scheduler of futures that have none. Nothing is ever submitted
// to it.
var noScheduler = sync.OnceValue(func() *sched.Engine { //nolint:gochecknoglobals // it has no state that changes
	return sched.New(sched.Config{Caught: caught, Report: func(error) {}})
})

// made returns the engine's call, and panics if p was not made with [NewPromise].
func (p *Promise[T]) made() *call[T] {
	if p == nil || !p.future.call.ByHand() {
		panic("stint: zero Promise: make one with NewPromise")
	}
	return &p.future.call
}

// Resolve settles the promise with a value and reports whether it did: false if it was
// settled before, also by [Future.Cancel]. The teardowns have been called when Resolve
// returns true.
func (p *Promise[T]) Resolve(value T) bool {
	c := p.made()
	if !c.Claim() {
		return false
	}
	c.value = value
	c.Settle(nil)
	return true
}

// Fail is [Promise.Resolve] with an error instead of a value. It panics if err is nil.
func (p *Promise[T]) Fail(err error) bool {
	c := p.made()
	if err == nil {
		panic("stint: Promise.Fail without an error: settle it with a value by Resolve")
	}
	if !c.Claim() {
		return false
	}
	c.Settle(err)
	return true
}

// Future returns the future that the promise settles, always the same one. Its Cancel
// settles it with the cause. The code that was to settle the promise learns of that by
// [Future.Done], by [Future.Teardown], or by Resolve, which then reports false. A panic of
// a teardown becomes part of the future's error, and is not passed to any [Config.OnPanic].
func (p *Promise[T]) Future() *Future[T] {
	p.made()
	return &p.future
}
