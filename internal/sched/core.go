package sched

import (
	"fmt"
	"sync/atomic"
)

// core is the slots of an engine, what waits for them, and the decision which work gets
// them. It decides with the engine's lock held; the lock acts on the decisions when it is
// released.
type core struct {
	gate   gate
	waking atomic.Bool // a worker has been started and has not read the queue yet, or spins
	killed atomic.Bool // running functions have been cancelled

	// Immutable.
	cfg    Config
	tracks bool // everything that has slots has an entry: see holders

	_ pad

	// The lock guards what follows and the bits of the gate. It is held for a few dozen
	// instructions; the only user code that runs under it is Config.Share, the methods of
	// Slots, and Sleeper.Expect, which do not panic, and the functions named also in
	// report.go, which may. Lock order: it comes before the locks of Slots and of futures,
	// and is never held together with that of another engine.
	combiningLock
	queue     queue
	volunteer *worker // the worker that calls dispatch and can run one job, or nil
	claimant  *entry  // the waiter whose goroutine calls dispatch, or nil
	workers   int     // goroutines that run jobs or publish their outcomes
	suspended suspendedFuncs
	blocked   backpressure
	shared    sharing
	holders   holders
	limits    Limits
	closed    bool   // new work is refused
	idle      idling // calls of WaitIdle and Drain

	_ pad
}

// job is a job that is about to run, or runs.
type job struct {
	Job

	group *Group // of a function of a group, else nil
	x     *entry // nil for work of one slot without a key
}

// refuse ends a job whose function is not called.
func (j *job) refuse(err error) {
	if j.group != nil {
		j.group.refuse(err)
	} else {
		j.call().refuse(err)
	}
}

// refuses returns the error that refuses an arrival of a weight, or nil. Work that a
// running function submits is accepted until the engine is closed by force.
func (c *core) refuses(weight int, nested bool) error {
	if c.closed && (!nested || c.killed.Load()) {
		return ErrClosed
	}
	return c.tooMuch(weight)
}

// tooMuch returns why work of a weight can never run, or nil.
func (c *core) tooMuch(weight int) error {
	limit := c.queue.policy.Bounds().Max()
	switch {
	case limit == 0:
		return ErrNoCapacity
	case weight > limit:
		return fmt.Errorf("%w: weight %d, limit %d; ask for less with Weight, or raise the limit with Resize", ErrTooHeavy,
			weight, limit)
	case weight > 1 && c.cfg.Slots != nil:
		return fmt.Errorf("%w: shared slots are taken one at a time; ask for 1 with Weight", ErrTooHeavy)
	}
	return nil
}
