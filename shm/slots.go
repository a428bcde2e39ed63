package shm

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

// Slots is a limit that processes share, for [stint.Config]. The methods are for
// the scheduler, which calls them with its lock held.
//
// The processes are served by tier, those of one tier by turns, and the tasks of
// a process as its scheduler decides. So that none starves, one in 64 slots that a
// process gives back while others wait goes to the process that has waited for
// longest, whatever its tier. To wake another process takes far longer
// than a short task, so a process may go on with its own tasks of the same tier
// for a while, which is bounded in number and in time. Tasks that a pause or their
// key holds back do not wait for a slot, and a process whose scheduler is at a limit of
// its own keeps none from the others.
type Slots struct {
	region *Region
	seat   *pool.Seat
	limit  int
	notify func() // set once, with the region's lock

	offered func() // offer

	// Guarded by the scheduler's lock.
	grants []uint64 // of each slot, the last grant, without the slot if it came back
	turns  int      // slots that came back while others waited, since the guard's turn
	since  int64    // when others of the same tier were first seen to wait in this run, or 0

	reaped    int64 // when one who only tries last looked for slots of the dead
	abandoned bool  // whoever had the slot last that was taken has died

	// A slot that has come back, and is for the next task of this process: its
	// index and 1, or 0. The scheduler asks for it before it gives up its lock, or
	// else the region's goroutine gives it back.
	kept atomic.Int64

	asked atomic.Bool // the scheduler has, since it was told of a slot

	// Written with both the scheduler's lock and the region's; Busy is the region's.
	want    pool.Want
	tickets [pool.Tiers]uint64 // since when tiers wait, 0: they have had their turn

	survivors survivors // that Usage has named; guarded by the region's lock
}

var _ stint.Sleeper = (*Slots)(nil)

func newSlots(r *Region, limit, n int) *Slots {
	s := &Slots{region: r, seat: r.member.Seat(limit), limit: limit, grants: make([]uint64, n)}
	s.offered = s.offer
	return s
}

// slotBits of a grant are the slot's index, and 1. The others are a number that
// no other grant of the slot has.
const slotBits = 20

// Bind keeps how the scheduler is told of slots that may be free. No slot is ever
// taken away from a process that lives, so lost is not called. It panics if it is
// called twice: open the region once more for another scheduler.
func (s *Slots) Bind(notify func(), _ func(stint.Grant, error)) {
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	if s.notify != nil {
		panic("shm: the slots of a region are for one scheduler; open the region again for another")
	}
	s.notify = notify
}

// TryAcquire takes a slot, unless none is free or another process waits for one
// in this tier or a higher one.
func (s *Slots) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	if s.region.closed.Load() {
		return 0, ErrClosed
	}
	var got pool.Slot
	var ok bool
	if s.want.Count == 0 { // so none is kept
		got.Index, ok = s.seat.Try()
	}
	if !ok {
		if got, ok = s.take(tierOf(tier)); !ok {
			return 0, stint.ErrNoSlot
		}
	}
	if s.region.closed.Load() { // meanwhile
		s.seat.Release(got.Index)
		return 0, ErrClosed
	}
	raceAcquire(s, got.Index)
	s.abandoned = got.Abandoned
	if s.want.Count > 0 {
		s.tickets[tierOf(tier)] = 0
		s.asked.Store(true)
	}
	grant := &s.grants[got.Index]
	*grant += 1<<slotBits + uint64(got.Index+1)
	return stint.Grant(*grant), nil
}

// take takes the slot that was kept, or any that there is for a tier.
func (s *Slots) take(tier int) (got pool.Slot, ok bool) {
	if got, ok = s.keptSlot(); !ok {
		got, ok = s.seat.Take(tier)
	}
	if !ok {
		got, ok = s.insist(tier)
	}
	return got, ok
}

// insist tries once more after it has seen to it that somebody who waits is in
// line, and that slots of the dead are found.
func (s *Slots) insist(tier int) (pool.Slot, bool) {
	s.asked.Store(true) // before it looks: see offer
	if s.want.Count > 0 && s.seat.InLine() {
		return pool.Slot{}, false // whoever frees a slot sees it, and the watcher looks for the dead
	}
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return pool.Slot{}, false
	}
	r.sweepLocked()
	s.want.Busy = false
	if s.want.Count > 0 {
		r.member.Check(s.limit)
	} else {
		s.reap()
	}
	return s.seat.Take(tier)
}

// reapAfter is how long after it was refused a process asks again whether those who
// have the slots live: the kernel is asked about each of them, and many try in a loop,
// or are refused once more before they wait.
const reapAfter = int64(time.Millisecond)

// reap looks for slots of the dead, for one who only tries: no watcher does, unless
// somebody waits.
func (s *Slots) reap() {
	if now := arena.Now(); now-s.reaped >= reapAfter {
		s.reaped = now
		s.region.member.ReapOwners(s.limit)
	}
}

// Release gives a slot back, which goes to who waits, here or in another process.
// It panics if the grant is not held; one that went back with the region counts as held.
func (s *Slots) Release(grant stint.Grant) {
	slot := int(grant%(1<<slotBits)) - 1
	if slot < 0 || slot >= len(s.grants) || s.grants[slot] != uint64(grant) {
		panic(fmt.Sprintf("shm: release of grant %d, which is not held", grant))
	}
	s.grants[slot] -= uint64(slot + 1)
	raceRelease(s, slot)
	if s.want.Count == 0 && s.turns < guardAfter {
		if s.seat.Drop(slot) {
			s.seat.Place(slot)
			s.turns++
		}
		return
	}
	switch rival := s.region.member.Rival(s.limit); {
	case rival >= 0 && s.turns >= guardAfter:
		s.turns = 1
		s.endRun(arena.Now())
		s.seat.Yield(slot)
	case s.want.Count == 0:
		s.seat.Release(slot)
	case rival > s.want.Tier:
		s.turns++
		s.seat.Release(slot)
	case rival == s.want.Tier && s.runIsOver():
		s.seat.Pass(slot)
	default:
		s.keep(slot, rival)
	}
}

// guardAfter is how many slots come back in a process while others wait, until one
// goes to the process that has waited for longest, whatever tier waits there.
const guardAfter = 64

// runFor is how long slots stay with a process while others of the same tier wait.
const runFor = int64(500 * time.Microsecond)

// runIsOver reports whether slots have stayed here for long enough, while others of
// the same tier wait, and begins another run then.
func (s *Slots) runIsOver() bool {
	switch now := arena.Now(); {
	case s.since == 0:
		s.since = now
		return false
	case now-s.since <= runFor:
		return false
	default:
		s.turns++
		s.endRun(now)
		return true
	}
}

// keep keeps a slot that comes back for the next of this process, where somebody
// waits, although others may wait as well. If nobody does, giving it back would be to
// have it granted to this process, and its watcher woken for it.
func (s *Slots) keep(slot, rival int) {
	if rival < 0 {
		s.since = 0
	}
	if rival >= 0 || s.turns > 0 && s.turns < guardAfter { // one that was granted a slot may be on its way
		s.turns++
	}
	if !s.kept.CompareAndSwap(0, int64(slot+1)) {
		s.seat.Release(slot)
	}
}

// endRun puts this process behind the others that wait in its tier: it has had its
// turn.
func (s *Slots) endRun(now int64) {
	s.since = 0
	if s.want.Count == 0 {
		return
	}
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	s.want.Ticket = pool.Ticket(now) | 1
	s.tickets[s.want.Tier] = s.want.Ticket
	if !s.region.closed.Load() {
		s.region.member.Want(s.limit, s.want)
	}
}

// keptSlot takes the slot that was kept. As with one that was granted to this
// process because of the highest tier that waits in it, the scheduler decides
// what it is for.
func (s *Slots) keptSlot() (pool.Slot, bool) {
	if s.kept.Load() == 0 {
		return pool.Slot{}, false
	}
	slot := s.kept.Swap(0)
	return pool.Slot{Index: int(slot - 1)}, slot != 0
}

// giveBack gives back the slot that was kept, if nobody has asked for it.
func (s *Slots) giveBack() {
	if slot := s.kept.Swap(0); slot != 0 {
		s.seat.Release(int(slot - 1))
	}
}

// offer tells the scheduler of a slot that was granted. If it does not ask for one,
// because it is at a limit of its own, the slot goes to others at once, and
// this process is granted none before its scheduler has asked again.
func (s *Slots) offer() {
	s.asked.Store(false)
	s.notify()
	if s.asked.Load() {
		return
	}
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.asked.Load() || s.want.Count == 0 || r.closed.Load() {
		return
	}
	s.want.Busy = true
	r.member.Want(s.limit, s.want)
	if s.asked.Load() { // by one who may have seen this process in line still
		s.want.Busy = false
		r.member.Want(s.limit, s.want)
	}
}

// Want says who waits.
func (s *Slots) Want(tier stint.Priority, waiting int) {
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return
	}
	if waiting == 0 {
		clear(s.tickets[:])
		s.giveBack()
	} else if since := &s.tickets[tierOf(tier)]; *since == 0 {
		*since = pool.Ticket(arena.Now()) | 1 // not 0
	}
	began := s.want.Count == 0
	s.want = pool.Want{
		Tier: tierOf(tier), Ticket: s.tickets[tierOf(tier)], Count: waiting,
		Busy: s.want.Busy && waiting > 0,
	}
	r.member.Want(s.limit, s.want)
	if waiting > 0 {
		r.watchLocked(began)
	}
}

// Expect announces a call of Sleep: until then no goroutine has to be started to wait.
func (s *Slots) Expect() {
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	s.region.watch.expected++
}

// Sleep waits for all that wait in this process for anything of the region, in the calling
// goroutine, until ready reports true; if others wait then, a goroutine of the region goes
// on with it. It returns at once if one does so already, or nobody waits.
func (s *Slots) Sleep(ready func() bool) { s.region.watchUntil(ready) }

// Rouse has Sleep ask whether it is ready.
func (s *Slots) Rouse() { s.region.rouse() }

// Usage tells who holds slots and who waits. Those of dead processes come back
// before. If a process has ended and another one that inherited its open file keeps its
// slots, that one is named, as [Inspect] does. It takes a while to find, with the locks of
// the scheduler and the region held, and is found again 5 s later at the earliest.
func (s *Slots) Usage() stint.Usage {
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	u := stint.Usage{Max: len(s.grants)}
	if r.closed.Load() {
		u.Err = ErrClosed.Error()
		return u
	}
	now := r.member.Usage(s.limit)
	u.Running, u.Waiting = now.Slots, now.Waiting
	found, all := make(survivors), &processes{arena: r.arena}
	for _, h := range now.Holders {
		if h.Dead {
			continue // since this was asked
		}
		u.Holders = append(u.Holders, stint.Holder{
			Name:    describe(s.survivors.look(h.Party, all, found)),
			Slots:   h.Slots,
			Waiting: h.Waiting,
		})
	}
	s.survivors = found
	return u
}

func tierOf(p stint.Priority) int { return int(p - stint.Lowest) }
