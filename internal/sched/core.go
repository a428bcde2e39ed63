package sched

import (
	"fmt"
	"sync/atomic"
)

// core is an engine's lock and what it guards: slots, what waits for them, and the
// decision which work gets them. It decides with the lock held, and acts when the lock is
// released: then it starts workers and wakes goroutines.
type core struct {
	gate   gate
	waking atomic.Bool // a worker has been started and has not read the queue yet, or spins
	killed atomic.Bool // running functions have been cancelled

	// Immutable.
	cfg    Config
	engine *Engine // of which it is part
	tracks bool    // everything that has slots has an entry: see holders

	_        pad
	combiner combiner
	_        pad

	// mu guards what follows and the bits of the gate. It is held for a few dozen
	// instructions; the only user code that runs under it is Config.Share and the methods
	// of Slots, which do not panic. Lock order: it comes before the locks of Slots and of
	// futures, and is never held together with that of another engine.
	mu        spinMutex
	queue     queue
	decided   decisions // decisions to act on when the lock is released
	volunteer *worker   // the worker that calls dispatch and can run one job, or nil
	claimant  *entry    // the waiter whose goroutine calls dispatch, or nil
	workers   int       // goroutines that run jobs or publish their outcomes
	suspended suspendedFuncs
	blocked   backpressure
	shared    sharing
	holders   holders
	paused    *Pause
	closed    bool   // new work is refused
	idle      idling // calls of WaitIdle and Drain

	_ pad
}

// pad keeps data that different processors write on different cache lines.
type pad [64]byte

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

// lock takes the engine's lock.
func (c *core) lock() {
	c.mu.Lock()
	c.combiner.combine()
}

func (c *core) tryLock() bool {
	if !c.mu.TryLock() {
		return false
	}
	c.combiner.combine()
	return true
}

// maxRounds is how often the lock's holder performs pending operations before it starts a
// goroutine that continues.
const maxRounds = 64

// unlock performs the pending operations, releases the lock, and then acts on the
// decisions made since it was taken. An operation deferred after that is performed by the
// goroutine that defers it, or here.
func (c *core) unlock() {
	if c.decided.none() && c.combiner.empty() {
		c.mu.Unlock()
		if c.combiner.empty() || !c.mu.TryLock() {
			return
		}
	}
	c.unlockAndAct()
}

// unlockAndAct is unlock for the case that something is pending or decided.
func (c *core) unlockAndAct() {
	var refused []refusal // published last: that waits for functions of the user's
	for rounds := 0; ; rounds++ {
		c.combiner.combine()
		if c.decided.none() {
			c.mu.Unlock()
		} else {
			what := c.decided
			c.decided = decisions{}
			c.mu.Unlock()
			refused = append(refused, what.refused...)
			what.deliver(c.engine)
		}
		if c.combiner.empty() {
			break
		}
		if rounds == maxRounds {
			go c.combiner.flush()
			break
		}
		if !c.mu.TryLock() {
			break
		}
	}
	if len(refused) > 0 {
		publishAll(c.engine, refused)
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
	limit := c.queue.policy.Max()
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
