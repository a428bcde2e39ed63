package stint

import "github.com/stintgo/stint/internal/sched"

// ErrNoSlot is what [Slots.TryAcquire] answers when no slot is free now.
var ErrNoSlot = sched.ErrNoSlot

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

// sharedSlots has the engine count tiers.
type sharedSlots struct{ Slots }

func (s sharedSlots) Bind(notify func(), lost func(uint64, error)) {
	s.Slots.Bind(notify, func(g Grant, cause error) { lost(uint64(g), cause) })
}

func (s sharedSlots) TryAcquire(tier int) (uint64, error) {
	g, err := s.Slots.TryAcquire(priorityOf(tier))
	return uint64(g), err
}

func (s sharedSlots) Release(grant uint64) { s.Slots.Release(Grant(grant)) }

func (s sharedSlots) Want(tier, waiting int) { s.Slots.Want(priorityOf(tier), waiting) }

// sleeperSlots are shared slots in which a goroutine can sleep.
type sleeperSlots struct {
	sharedSlots

	sleeper Sleeper
}

func (s sleeperSlots) Expect() { s.sleeper.Expect() }

func (s sleeperSlots) Sleep(ready func() bool) { s.sleeper.Sleep(ready) }

func (s sleeperSlots) Rouse() { s.sleeper.Rouse() }

func engineSlots(s Slots) sched.Slots {
	if sleeper, ok := s.(Sleeper); ok {
		return sleeperSlots{sharedSlots{s}, sleeper}
	}
	return sharedSlots{s}
}
