package stint

import "github.com/stintgo/stint/internal/sched"

// ErrNoSlot is the error of [Slots.TryAcquire] when no slot is free.
var ErrNoSlot = sched.ErrNoSlot

// Grant identifies one slot that was taken, for as long as it is held. It is not 0.
type Grant uint64

// Slots is the source of a [Scheduler]'s slots when they are shared with other processes
// or hosts. The contract:
//
//   - TryAcquire takes one slot for an entry of a tier and never blocks; an
//     implementation that has to ask a remote host returns [ErrNoSlot] and notifies
//     later. Any other error means that no slot can be had: the entry that asked gets
//     that error. So an implementation decides whether a lost connection is waited
//     out (ErrNoSlot) or reported.
//   - Release releases a grant, exactly once. A grant that was lost is not released.
//   - Want reports how many entries wait for a slot, and the highest tier that could
//     start one, whenever either changes; waiting is 0 when no entry waits. An entry
//     that a pause or its own key holds back does not wait for a slot. A tier at its
//     cap is reported only if no other tier could use a slot: then it is for a slot
//     that the scheduler itself releases. Everything that could start on a slot is
//     reported before that slot is released. The implementation calls notify only
//     while an entry waits: each time a slot may have come free, and also if one came
//     free between a TryAcquire that found none and Want. If no TryAcquire follows a
//     notification, it may call notify no more until a TryAcquire finds no slot or Want
//     reports 0: the scheduler is at a limit of its own, and the slot is for others.
//   - After Bind, and until a grant is released, the implementation calls lost if
//     that grant was taken away: the lease ran out, the region is gone. The context
//     of the work that ran on it then ends with cause [ErrSlotLost].
//   - Usage returns the holders of slots and the waiters, over all participants. If these
//     are on other hosts, the result may be some time old.
//
// New calls Bind once, before all others, without the scheduler's lock. All other methods are
// called with that lock held. No method may block, or call notify or lost before it
// returns. If TryAcquire, Release or Want panics, the program ends, even if a caller recovers
// the panic, since the scheduler would stay locked. notify and lost may be called from any
// goroutine.
type Slots interface {
	Bind(notify func(), lost func(grant Grant, cause error))
	TryAcquire(tier Priority) (Grant, error)
	Release(grant Grant)
	Want(tier Priority, waiting int)
	Usage() Usage
}

// Sleeper is an optional interface of [Slots]. It lets a goroutine that waits alone for a
// slot sleep in the system itself instead of on a channel: a wake of one goroutine by
// another takes as long as a wake by another process. The scheduler calls Expect with its
// lock held, before Want, and then Sleep, from the same goroutine and without the lock. It
// does so only while it has no slot and nothing else waits. A panic of Expect ends the
// program.
type Sleeper interface {
	Slots

	// Expect announces the call of Sleep that follows. Until then the implementation
	// needs no other goroutine to find out when a slot comes free.
	Expect()

	// Sleep does what a goroutine of the implementation otherwise does while an entry
	// waits, and calls notify where that goroutine would. It returns when ready returns
	// true, and may return earlier; if an entry waits then, the implementation has made
	// sure that it is still notified of slots. It calls ready at the beginning and after
	// each wake, without a lock: ready may call TryAcquire and Want. ready takes a slot that
	// has come free, so there is no need to call notify for that slot first.
	Sleep(ready func() bool)

	// Rouse makes a running call of Sleep call ready again. It may be called from any
	// goroutine, with any lock held. It does nothing if no call of Sleep runs.
	Rouse()
}

// Usage is the state of shared slots.
type Usage struct {
	Max     int      `json:"max"`
	Running int      `json:"running"` // slots held by all participants
	Waiting int      `json:"waiting"` // entries of all participants that wait for a slot
	Holders []Holder `json:"holders,omitempty"`
	Err     string   `json:"err,omitempty"` // why the slots cannot be had now, empty if they can
}

// Holder is a participant in shared slots.
type Holder struct {
	Name    string `json:"name"` // of the process or host
	Slots   int    `json:"slots"`
	Waiting int    `json:"waiting"`
}

// sharedSlots adapts Slots to the engine, which counts tiers from 0.
type sharedSlots struct{ Slots }

func (s sharedSlots) Bind(notify func(), lost func(uint64, error)) {
	s.Slots.Bind(notify, func(g Grant, cause error) { lost(uint64(g), cause) })
}

// TryAcquire, Release and Want are mustReturn written out: with its closures, a free slot would
// take 6 % longer.

func (s sharedSlots) TryAcquire(tier int) (grant uint64, err error) {
	returned := false
	defer func() {
		if !returned {
			failStop("Slots.TryAcquire", recover())
		}
	}()
	g, err := s.Slots.TryAcquire(priorityOf(tier))
	returned = true
	return uint64(g), err
}

func (s sharedSlots) Release(grant uint64) {
	returned := false
	defer func() {
		if !returned {
			failStop("Slots.Release", recover())
		}
	}()
	s.Slots.Release(Grant(grant))
	returned = true
}

func (s sharedSlots) Want(tier, waiting int) {
	returned := false
	defer func() {
		if !returned {
			failStop("Slots.Want", recover())
		}
	}()
	s.Slots.Want(priorityOf(tier), waiting)
	returned = true
}

// sleeperSlots are shared slots in which a goroutine can sleep.
type sleeperSlots struct {
	sharedSlots

	sleeper Sleeper
}

func (s sleeperSlots) Expect() { mustReturn("Sleeper.Expect", s.sleeper.Expect) }

func (s sleeperSlots) Sleep(ready func() bool) { s.sleeper.Sleep(ready) }

func (s sleeperSlots) Rouse() { s.sleeper.Rouse() }

func engineSlots(s Slots) sched.Slots {
	if sleeper, ok := s.(Sleeper); ok {
		return sleeperSlots{sharedSlots{s}, sleeper}
	}
	return sharedSlots{s}
}
