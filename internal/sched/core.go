package sched

import (
	"fmt"
	"sync/atomic"
)

// core is an engine's lock and what it guards: slots, what waits for them, and the decision
// which work gets them. It decides, and when the lock is given up it acts on that: it
// starts workers and wakes goroutines.
type core struct {
	gate   gate
	waking atomic.Bool // a worker has been started and has not looked at the queue yet, or spins
	killed atomic.Bool // what runs has been cancelled

	// Immutable.
	cfg    Config
	engine *Engine // that it is part of
	tracks bool    // an entry stands for all that has slots: see holders

	_        pad
	combiner combiner
	_        pad

	// mu guards what follows and the bits of the gate. It is held for a few dozen
	// instructions; nothing of the user's runs under it but Config.Share and the methods of
	// Slots. It comes before the locks of Slots and of futures, and is never held together
	// with that of another engine.
	mu        spinMutex
	queue     queue
	news      news    // to act on when the lock is given up
	volunteer *worker // the caller of dispatch, if that is a worker that can run one job
	workers   int     // goroutines that run jobs or publish their outcomes
	suspended suspendedFuncs
	blocked   backpressure
	shared    sharing
	holders   holders
	paused    *Pause
	closed    bool   // nothing new is taken
	idle      idling // calls that wait until nothing is left

	_ pad
}

// pad keeps what different processors write on different cache lines.
type pad [64]byte

// job is a job that is to run, or runs.
type job struct {
	Job

	group *Group // that it is a function of, if it is one
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
	if c.news.none() && c.combiner.empty() {
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
		if c.news.none() {
			c.mu.Unlock()
		} else {
			what := c.news
			c.news = news{}
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

// refuses says why an arrival of a weight is not taken. What is part of a
// running function is taken until the engine is closed by force.
func (c *core) refuses(weight int, nested bool) error {
	if c.closed && (!nested || c.killed.Load()) {
		return ErrClosed
	}
	return c.tooMuch(weight)
}

// tooMuch says why work of a weight could never run.
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
