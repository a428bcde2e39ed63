package stint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNoSlot is what [Slots.TryAcquire] answers when no slot is free now.
var ErrNoSlot = errors.New("stint: no shared slot is free")

// Grant names one slot that was taken, for as long as it is held. It is not 0.
type Grant uint64

// Slots is where the slots of a [Scheduler] come from when they are shared
// with other processes or hosts. The contract:
//
//   - TryAcquire takes one slot for an entry of a tier and never blocks; an
//     implementation that has to ask far away answers [ErrNoSlot] and notifies
//     later. Any other error means that the slots cannot be had: it is the
//     answer of the entry that asked. So an implementation decides whether a
//     lost connection is waited out (ErrNoSlot) or reported.
//   - Release gives a grant back, exactly once. A grant that was lost is not
//     released.
//   - Want tells how many wait for a slot, and the highest tier of which one could
//     start with it, whenever either changes; with 0 waiting nobody does. What a
//     pause or its own key holds back does not wait for a slot, and a tier at its cap
//     is told of only where no other could use one: then a slot that the scheduler
//     gives back is for it. All that could start on a slot is told of before that
//     slot is released. Only while somebody waits does the implementation call
//     notify, each time a slot may have come free, and also if one came free between
//     the answer that there was none and Want.
//   - After Bind, and until a grant is released, the implementation calls lost
//     if that grant was taken away: the lease ran out, the region is gone. The
//     context of the work that ran on it then ends with cause [ErrSlotLost].
//   - Usage tells who holds slots and who waits, over all who share.
//
// All methods are called with the scheduler's lock held: they must not block,
// and must not call notify or lost before they return. notify and lost may be
// called from any goroutine.
type Slots interface {
	Bind(notify func(), lost func(grant Grant, cause error))
	TryAcquire(tier Priority) (Grant, error)
	Release(grant Grant)
	Want(tier Priority, waiting int)
	Usage() Usage
}

// Sleeper is what [Slots] may be as well, so that a goroutine which waits alone for a slot
// sleeps in the system itself, instead of a channel: a wake of one goroutine by another
// takes as long as one by another process. The scheduler calls Expect with its lock held,
// before Want, and then Sleep, from the same goroutine and without the lock. It does so
// only while it has no slot and nothing else waits.
type Sleeper interface {
	Slots

	// Expect announces the call of Sleep that follows. Until then the implementation
	// needs nobody else to find out when a slot comes free.
	Expect()

	// Sleep does what else a goroutine of the implementation does while somebody waits,
	// and calls notify where that would. It returns when ready reports true, and may
	// return earlier; if somebody waits then, it has seen to it that they are told of
	// slots all the same. It calls ready without a lock, as that may call Want.
	Sleep(ready func() bool)

	// Rouse has a call of Sleep ask ready again, if there is one. It may be called from
	// any goroutine, with any lock held.
	Rouse()
}

// Usage is the state of shared slots.
type Usage struct {
	Max     int      `json:"max"`
	Running int      `json:"running"` // slots held, by all who share
	Waiting int      `json:"waiting"` // entries that wait for a slot, of all who share
	Holders []Holder `json:"holders,omitempty"`
	Err     string   `json:"err,omitempty"` // why the slots cannot be had now, empty if they can
}

// Holder is one of those who share slots.
type Holder struct {
	Name    string `json:"name"` // of the process or host
	Slots   int    `json:"slots"`
	Waiting int    `json:"waiting"`
}

// grants is what a core keeps of slots that are shared.
type grants struct {
	held   map[Grant]*entry // of functions, and of whoever is about to go on
	loose  []Grant          // taken by Acquire, which keeps no entry
	lost   int              // of those, the number taken away before they were released
	wanted struct {
		tier    Priority
		waiting int
	}
}

func (c *core) bindSlots() {
	c.grants.held = make(map[Grant]*entry)
	c.sleeper, _ = c.slots.(Sleeper)
	c.slots.Bind(c.refresh, c.loseGrant)
	c.refresh()
}

// obtain takes a shared slot for e. The word cannot change meanwhile: with
// shared slots everybody takes the lock.
func (c *core) obtain(e *entry) error {
	grant, err := c.slots.TryAcquire(priorityOf(int(e.Value.tier)))
	switch {
	case err != nil:
	case e.Value.loose:
		c.grants.loose = append(c.grants.loose, grant)
	default:
		e.Value.grant = grant
		c.grants.held[grant] = e
	}
	return err
}

// takeShared takes a shared slot at once, for Acquire, if nothing waits here: that
// needs no entry.
func (c *core) takeShared(tier int) bool {
	c.lock()
	defer c.unlock()
	if !c.nothingWaits() || c.paused != nil || c.refuses(1, false) != nil || !c.log.Admits(tier, "", 1, c.running()) {
		return false
	}
	grant, err := c.slots.TryAcquire(priorityOf(tier))
	if err != nil {
		return false
	}
	c.grants.loose = append(c.grants.loose, grant)
	c.word.Add(1)
	return true
}

// expectSleep has the goroutine of e, which is about to be queued, sleep in the shared
// slots if nobody else of this scheduler can have them wake it: nothing waits or runs
// here, so the slot comes from elsewhere.
func (c *core) expectSleep(e *entry) {
	if c.sleeper != nil && c.running() == 0 && c.nothingWaits() {
		e.Value.sleeps = true
		c.sleeper.Expect()
	}
}

// sleep waits in the shared slots, which have been told to expect it, until e is granted or
// refused, or the slots can do without. If ctx ends first, it withdraws e: canceled. A
// context that is watched has e refused instead.
func (c *core) sleep(ctx context.Context, e *entry, watched bool) (canceled bool) {
	if !watched && ctx.Done() != nil {
		stop := context.AfterFunc(ctx, c.sleeper.Rouse)
		defer stop()
	}
	c.sleeper.Sleep(func() (ready bool) {
		canceled = canceled || !watched && ctx.Err() != nil && c.withdraw(e)
		return canceled || len(e.Value.ready) > 0
	})
	return canceled
}

// nothingWaits reports whether there is nothing to start, and nobody to tell that
// there is not.
func (c *core) nothingWaits() bool {
	return c.log.Len() == 0 && len(c.resumes) == 0 && c.idle == nil && c.posted() == 0 &&
		(c.door == nil || c.door.Len() == 0)
}

// giveGrant releases the shared slot of e, unless it was lost.
func (c *core) giveGrant(e *entry) {
	if !e.Value.lost {
		delete(c.grants.held, e.Value.grant)
		c.want(c.running() - 1)
		c.slots.Release(e.Value.grant)
	}
	e.Value.grant, e.Value.lost = 0, false
}

// bindGrant says whose work runs on the grant of e.
func (c *core) bindGrant(e *entry, t *task) {
	c.lock()
	e.Value.task = t
	lost := e.Value.lost
	c.unlock()
	if lost {
		t.cancel(ErrSlotLost)
	}
}

// moveGrant gives the grant of one entry to another.
func (c *core) moveGrant(from, to *entry) {
	to.Value.grant, to.Value.lost = from.Value.grant, from.Value.lost
	from.Value.grant, from.Value.lost = 0, false
	if !to.Value.lost {
		c.grants.held[to.Value.grant] = to
	}
}

// releaseLoose releases one grant that Acquire took. Which one is all the same.
func (c *core) releaseLoose() {
	if c.grants.lost > 0 {
		c.grants.lost--
		return
	}
	c.want(c.running() - 1)
	last := len(c.grants.loose) - 1
	c.slots.Release(c.grants.loose[last])
	c.grants.loose = c.grants.loose[:last]
}

// loseGrant ends the work that runs on a grant that was taken away. Code
// between Acquire and Release cannot be told.
func (c *core) loseGrant(grant Grant, cause error) {
	c.lock()
	if i := slices.Index(c.grants.loose, grant); i >= 0 {
		c.grants.loose = slices.Delete(c.grants.loose, i, i+1)
		c.grants.lost++
	}
	var t *task
	if e := c.grants.held[grant]; e != nil {
		delete(c.grants.held, grant)
		e.Value.lost = true
		t = e.Value.task
	}
	c.unlock()
	if t != nil {
		t.cancel(fmt.Errorf("%w: %w", ErrSlotLost, cause))
	}
}

// want tells Slots who waits for a slot, if that has changed. It is told before a
// slot goes back, of what could start then, and once it is known what has started.
func (c *core) want(running int) {
	wanted := c.grants.wanted
	if c.log.Len() == 0 && len(c.resumes) == 0 && wanted.waiting == 0 {
		return
	}
	wanted.waiting = c.log.Len() - c.log.HeldByKey()
	highest := -1
	if wanted.waiting > 0 && c.paused == nil {
		highest = c.startable(running)
	}
	if highest < 0 {
		wanted.waiting = 0
	}
	for _, e := range c.resumes {
		if c.log.KeyHasRoom(e.Value.keyName()) {
			highest = max(highest, int(e.Value.tier))
			wanted.waiting++
		}
	}
	if highest >= 0 {
		wanted.tier = priorityOf(highest)
	}
	if wanted != c.grants.wanted {
		c.grants.wanted = wanted
		c.slots.Want(wanted.tier, wanted.waiting)
	}
}

// startable returns the tier that a slot would be spent on, or -1. If that is none
// because of limits of our own, it is the tier for one of our own that comes back:
// then nothing can start on another's slot, so the tier is no advantage, and ours
// does not go round by another process for the next task.
func (c *core) startable(running int) (tier int) {
	tier = c.log.Highest(running)
	if tier < 0 && running > 0 {
		tier = c.log.Highest(running - 1)
	}
	return tier
}
