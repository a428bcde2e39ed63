package stint

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/backlog"
)

// core is the state behind a Scheduler and its views.
type core struct {
	word    atomic.Uint64        // see word.go
	caps    [Tiers]atomic.Uint32 // effective caps, for the path without a lock
	limit   atomic.Uint32
	waking  atomic.Bool           // a worker has been started and has not looked at the queue yet, or lingers
	killed  atomic.Bool           // what runs has been cancelled
	watched atomic.Pointer[watch] // of the context used last; changes with mu held

	// Immutable.
	born     time.Time
	cfg      Config
	slots    Slots   // nil for slots of our own
	sleeper  Sleeper // slots, if they are one
	parallel bool    // there is more than one processor
	gone     entry   // stands for the entry of a group's job that has ended
	basic    entry   // stands for work of one slot without a key, which needs no entry of its own

	rares sync.Pool // unused entries that have a rare

	_     pad
	inbox inbox // written by those who submit,
	_     pad
	mail  mail // by those who find the lock taken,
	_     pad

	// and what follows by those who finish.
	//
	// mu, which is taken with [core.lock], guards what follows and the bits of
	// word. It is held for a few dozen instructions; nothing of the user's runs
	// under it but Config.Share. It comes before the locks of Slots and of futures.
	mu          spinMutex
	log         *backlog.Backlog[work]
	door        *backlog.Backlog[work] // submitters for which a bounded queue has no room; nil if unbounded
	granted     entryQueue             // granted or refused, to be told when the lock is given up
	lent        int                    // tasks that have lent their slot
	resumes     []*entry               // and those of them that want it back: they go first
	drawn       [Tiers]batch
	drawnCount  int
	unused      pages
	workers     int    // goroutines that run jobs or publish their outcomes
	volunteer   bool   // the caller of dispatch is a worker that can run one job,
	volunteered *entry // and this is the one
	paused      *pause
	closed      bool // nothing new is taken
	idle        chan struct{}
	live        map[*task]struct{} // running tasks whose functions asked for a Done channel
	grants      grants

	free     entryList // unused entries; those that have a rare are in rares
	clock    stamps
	lastDone <-chan struct{} // of the context of the goroutine that waited last
}

// pad keeps what different processors write on different cache lines.
type pad [64]byte

type pause struct {
	by    string
	since time.Time
}

// made returns c, and panics if that is nil: the scheduler was not made with [New]. The
// paths without a lock need no check, since a weight of 1 comes from New or [Scheduler.Weight].
func (c *core) made() *core {
	if c == nil {
		panic("stint: zero Scheduler: make one with New")
	}
	return c
}

func newCore(limit int, cfg Config) *core {
	policy := backlog.Config{Max: limit, Caps: cfg.Caps.tiers(), PerKey: cfg.PerKey, Share: cfg.Share}
	c := &core{
		born:     now(),
		cfg:      cfg,
		slots:    cfg.Slots,
		parallel: runtime.GOMAXPROCS(0) > 1,
		log:      backlog.New[work](policy),
		live:     make(map[*task]struct{}),
	}
	if cfg.Queue > 0 {
		c.door = backlog.New[work](backlog.Config{Max: cfg.Queue, Share: cfg.Share})
	}
	c.basic.Value.weight = 1
	c.inbox.room = c.room()
	c.publishLimits()
	if c.slots != nil {
		c.bindSlots()
	}
	return c
}

// publishLimits makes the limits known to the path without a lock, and voids
// admissions that were decided under the old ones.
func (c *core) publishLimits() {
	limit, caps := c.log.Limits()
	c.limit.Store(uint32(limit))
	for i, n := range caps {
		c.caps[i].Store(uint32(n))
	}
	c.word.Add(epochOne)
}

// change applies a change of limits or of state, and starts what it allows.
func (c *core) change(apply func()) {
	c.made().lock()
	apply()
	c.publishLimits()
	c.dispatchAndUnlock(0, false)
}

func (c *core) pause(by string) {
	if c.paused == nil {
		c.paused = &pause{by: by, since: now()}
	}
}

func (c *core) resize(limit int) {
	c.made().lock()
	c.log.SetMax(limit)
	c.inbox.setShut(c.closed || limit == 0)
	c.empty(allTiers)
	c.publishLimits()
	tooMuch := func(e *entry) error { return c.tooMuch(int(e.Value.weight)) }
	c.refuseAll(tooMuch)
	c.refuseDoor(tooMuch)
	c.dispatchAndUnlock(0, false)
}

// refuses says why an arrival of a weight is not taken. What is part of a
// running function is taken until the scheduler is closed by force.
func (c *core) refuses(weight int, nested bool) error {
	if c.closed && (!nested || c.killed.Load()) {
		return ErrClosed
	}
	return c.tooMuch(weight)
}

// tooMuch says why an entry of a weight could never run.
func (c *core) tooMuch(weight int) error {
	limit, _ := c.log.Limits()
	switch {
	case limit == 0:
		return ErrNoCapacity
	case weight > limit:
		return fmt.Errorf("%w: weight %d, limit %d", ErrTooHeavy, weight, limit)
	case weight > 1 && c.slots != nil:
		return fmt.Errorf("%w: shared slots are taken one at a time", ErrTooHeavy)
	}
	return nil
}

// take gets a slot for a waiter the slow way, waiting if it must. The entry that
// it returns stands for the slot; with Slots it names the grant, unless that is
// loose.
func (c *core) take(ctx context.Context, e *entry) (*entry, error) {
	done := ctx.Done() // before the lock, which a task's context takes
	e.Value.done = done
	watched := false
	if w := c.watched.Load(); w != nil && w.done == done {
		e.Value.watch, watched = w, true
	}
	if !c.leave(e) {
		settled := c.arrive(e)
		c.unlock()
		if settled {
			return c.awaited(ctx, e)
		}
	}
	if e.Value.sleeps && c.sleep(ctx, e, watched) {
		return nil, context.Cause(ctx)
	}
	if watched || done == nil {
		<-e.Value.ready
		return c.awaited(ctx, e)
	}
	return c.await(ctx, e)
}

// arrive grants e a slot, refuses it or queues it. settled says that it is not
// queued. The lock is held.
func (c *core) arrive(e *entry) (settled bool) {
	tier, key, weight := int(e.Value.tier), e.Value.key, int(e.Value.weight)
	w := e.Value.watch
	e.Value.watch = nil
	c.makeWay(tier)
	if e.Value.err = c.refuses(weight, e.Value.nested); e.Value.err != nil {
		return true
	}
	if c.admit(e) {
		c.admitted(key)
		return true
	}
	if c.door != nil && c.cfg.WhenFull == Refuse && !c.inbox.claim(c.room()) {
		e.Value.err = ErrQueueFull
		return true
	}
	c.expectSleep(e)
	c.push(e)
	c.watch(w, e)
	e.Value.again = w == nil && c.lastDone == e.Value.done
	c.lastDone = e.Value.done
	c.dispatch(0, false)
	return false
}

func (c *core) full() bool { return c.door != nil && c.occupied() >= c.cfg.Queue }

// push queues e. The caller dispatches afterwards: a slot may have come free
// since it looked, and the word has yet to be told that the tier waits.
func (c *core) push(e *entry) {
	v := &e.Value
	v.since = c.clock.stamp(c.born, c.log.Len() == 0)
	c.log.Push(e, int(v.tier), v.keyName(), int(v.weight))
	c.tellRoom()
}

// await waits until e is granted or refused, or takes it out when ctx ends.
func (c *core) await(ctx context.Context, e *entry) (*entry, error) {
	select {
	case <-e.Value.ready:
	case <-ctx.Done():
		if c.withdraw(e) {
			return nil, context.Cause(ctx)
		}
		<-e.Value.ready // granted at the same moment: the slot is ours, and so is its return
	}
	if e.Value.again && e.Value.err == nil {
		_, _ = c.watchFor(ctx) // for the next one of this context; if it has ended, that one finds out
	}
	return c.awaited(ctx, e)
}

// awaited makes of a wait that is over what it brought.
func (c *core) awaited(ctx context.Context, e *entry) (*entry, error) {
	if err := e.Value.err; err != nil {
		c.recycleRare(e)
		if err == errLeft { //nolint:errorlint // it is not wrapped
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return e, nil
}

// withdraw takes a queued entry out and reports whether it was still queued.
// What it held back may start now.
func (c *core) withdraw(e *entry) bool {
	c.lock()
	if !e.Queued() {
		c.unlock()
		return false
	}
	c.dequeue(e)
	c.recycle(e)
	c.dispatchAndUnlock(0, false)
	return true
}

// tryTake gets a slot the slow way if that needs no waiting.
func (c *core) tryTake(s Scheduler, tier int) bool {
	c.lock()
	defer c.unlock()
	c.makeWay(tier)
	if c.refuses(int(s.weight), false) != nil {
		return false
	}
	e := c.entry(s, tier)
	if c.slots != nil {
		e.Value.loose = true
	}
	ok := c.admit(e)
	if ok {
		c.admitted(s.key)
	}
	c.recycle(e)
	return ok
}

// admitted follows an admission. If that took its key to the limit, the key's
// entries no longer hold back what waits behind them; and a tier that waits may have
// come to its cap.
func (c *core) admitted(key string) {
	switch {
	case c.log.Len() == 0:
	case key != "":
		c.dispatch(0, false)
	case c.slots != nil:
		c.want(c.running())
	}
}

// admit starts an arrival at once if nothing waits before it.
func (c *core) admit(e *entry) bool {
	tier, key, weight := int(e.Value.tier), e.Value.keyName(), int(e.Value.weight)
	for {
		old := c.word.Load()
		if c.paused != nil || len(c.resumes) > 0 || !c.log.Admits(tier, key, weight, int(uint32(old))) {
			return false
		}
		if c.slots != nil && c.obtain(e) != nil {
			return false
		}
		if c.word.CompareAndSwap(old, old+uint64(weight)) {
			c.log.Admit(key)
			return true
		}
	}
}

// give returns weight slots of a key to whoever is next.
func (c *core) give(key string, weight int) {
	if key != "" || weight != 1 {
		c.lock()
	} else if c.leaveReturn() {
		return
	}
	if c.running() < weight || key != "" && c.log.Running(key) == 0 ||
		c.slots != nil && len(c.grants.loose)+c.grants.lost == 0 {
		c.unlock()
		panic("stint: Release without Acquire")
	}
	c.log.Finish(key)
	if c.slots != nil {
		c.releaseLoose()
	}
	c.release(weight)
	c.unlock()
}
