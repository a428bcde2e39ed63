package shm

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

// Slots is a limit that processes share, for [stint.Config]. Its methods are for
// the scheduler, which calls them with its lock held.
//
// Processes are served by tier, those of the same tier in turns, and the tasks of a
// process in the order of its scheduler. So that no process starves, one in 64 slots that
// a process releases while others wait goes to the process that has waited longest,
// whatever its tier. Waking another process takes far longer than a short task, so a
// process may continue with its own tasks of the same tier for a while, which is bounded
// in number and in time. Tasks that are held back by a pause or by their key do not wait
// for a slot, and a process whose scheduler is at a limit of its own does not keep slots
// from other processes.
type Slots struct {
	region *Region
	handle *pool.Handle
	limit  int
	notify func() // set once, with the region's lock held

	offered func() // the method value s.offer

	// Guarded by the scheduler's lock.
	grants    []uint64 // the last grant of each slot, without the slot's bits once it is released
	contended int      // slots released while others waited, since the last Yield
	runBegan  int64    // when others of the same tier were first seen to wait in this run, or 0

	lastReap  int64 // time of the last ReapOwners
	abandoned bool  // the previous holder of the slot that was last taken has died

	// A released slot that is reserved for the next task of this process: its index plus
	// 1, or 0. The scheduler asks for it before it releases its lock; otherwise the
	// watcher releases the slot.
	kept atomic.Int64

	asked atomic.Bool // the scheduler has called TryAcquire since it was last notified

	// Written with both the scheduler's lock and the region's held; Busy with the
	// region's.
	want    pool.Want
	tickets [pool.Tiers]uint64 // when each tier began to wait, or last ended a run; 0: Want sets it

	survivors survivors // living processes that hold slots of processes that have ended; guarded by the region's lock
}

var _ stint.Sleeper = (*Slots)(nil)

func newSlots(r *Region, limit, n int) *Slots {
	s := &Slots{region: r, handle: r.member.Handle(limit), limit: limit, grants: make([]uint64, n)}
	s.offered = s.offer
	return s
}

// slotBits is the number of bits of a grant that hold the slot's index plus 1. The other
// bits are a number that makes each grant of the slot unique.
const slotBits = 20

// Bind sets the function that notifies the scheduler of slots that may be free. A slot is
// never taken from a living process, so the second function is not called. Bind panics if
// it is called twice: open the region again for another scheduler.
func (s *Slots) Bind(notify func(), _ func(stint.Grant, error)) {
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	if s.notify != nil {
		panic("shm: the slots of a region are for one scheduler; open the region again for another")
	}
	s.notify = notify
}

// TryAcquire takes a slot. It fails with [stint.ErrNoSlot] if none is free or another
// process waits for one in this tier or a higher one, and with [ErrClosed].
func (s *Slots) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	if s.region.closed.Load() {
		return 0, ErrClosed
	}
	var got pool.Slot
	var ok bool
	if s.want.Count == 0 { // then no slot is kept
		got.Index, ok = s.handle.Try()
	}
	if !ok {
		if got, ok = s.take(tierOf(tier)); !ok {
			return 0, stint.ErrNoSlot
		}
	}
	if s.region.closed.Load() { // closed meanwhile
		s.handle.Undo(got)
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

// take takes the kept slot, or any other that a tier may have.
func (s *Slots) take(tier int) (got pool.Slot, ok bool) {
	if got, ok = s.keptSlot(); !ok {
		got, ok = s.handle.Take(tier)
	}
	if !ok {
		got, ok = s.retry(tier)
	}
	return got, ok
}

// retry makes sure that waiters of this process are in the mask and that slots of the
// dead are found, and tries once more.
func (s *Slots) retry(tier int) (pool.Slot, bool) {
	s.asked.Store(true) // before the state is read: see offer
	if s.want.Count > 0 && s.handle.Queued() {
		return pool.Slot{}, false // a release will grant to this process, and the watcher looks for the dead
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
		s.handle.Check()
	} else {
		s.reap()
	}
	return s.handle.Take(tier)
}

// reapAfter is how long reap waits before it checks the owners of the slots again: each
// check queries the kernel for every owner, and callers often try in a loop, or are
// refused once more before they wait.
const reapAfter = int64(time.Millisecond)

// reap looks for slots of the dead on behalf of a caller that only tries: without waiters
// there is no watcher.
func (s *Slots) reap() {
	if now := arena.Now(); now-s.lastReap >= reapAfter {
		s.lastReap = now
		s.handle.ReapOwners()
	}
}

// Release releases a slot, which goes to the next waiter, here or in another process.
// It panics if the grant is not held; a grant that Close has released counts as held.
func (s *Slots) Release(grant stint.Grant) {
	slot := int(grant%(1<<slotBits)) - 1
	if slot < 0 || slot >= len(s.grants) || s.grants[slot] != uint64(grant) {
		panic(fmt.Sprintf("shm: release of grant %d, which is not held", grant))
	}
	s.grants[slot] -= uint64(slot + 1)
	raceRelease(s, slot)
	if s.want.Count == 0 && s.contended < guardAfter {
		if s.handle.Drop(slot) {
			s.handle.Place(slot)
			s.contended++
		}
		return
	}
	switch rival := s.handle.Rival(); {
	case rival >= 0 && s.contended >= guardAfter:
		s.contended = 1
		s.endRun(arena.Now())
		s.handle.Yield(slot)
	case s.want.Count == 0:
		s.handle.Release(slot)
	case rival > s.want.Tier:
		s.contended++
		s.handle.Release(slot)
	case rival == s.want.Tier && s.runIsOver():
		s.handle.Pass(slot)
	default:
		s.keep(slot, rival)
	}
}

// guardAfter is the number of slots that a process releases while others wait, until one
// goes to the process that has waited longest, in any tier.
const guardAfter = 64

// runFor is how long a process may keep its slots, in ns, while others of the same tier
// wait.
const runFor = int64(500 * time.Microsecond)

// runIsOver reports whether this process has kept its slots for longer than runFor while
// others of the same tier wait. It then begins another run.
func (s *Slots) runIsOver() bool {
	switch now := arena.Now(); {
	case s.runBegan == 0:
		s.runBegan = now
		return false
	case now-s.runBegan <= runFor:
		return false
	default:
		s.contended++
		s.endRun(now)
		return true
	}
}

// keep reserves a released slot for the next waiter of this process, also while other
// processes wait. If none waits, releasing the slot would only grant it to this process
// again, and wake its watcher.
func (s *Slots) keep(slot, rival int) {
	if rival < 0 {
		s.runBegan = 0
	}
	if rival >= 0 || s.contended > 0 && s.contended < guardAfter { // another process may be about to take a grant
		s.contended++
	}
	if !s.kept.CompareAndSwap(0, int64(slot+1)) {
		s.handle.Release(slot)
	}
}

// endRun puts this process behind the others that wait in its tier.
func (s *Slots) endRun(now int64) {
	s.runBegan = 0
	if s.want.Count == 0 {
		return
	}
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	s.want.Ticket = pool.Ticket(now) | 1
	s.tickets[s.want.Tier] = s.want.Ticket
	if !s.region.closed.Load() {
		s.handle.Want(s.want)
	}
}

// keptSlot takes the kept slot. Like a slot that was granted for the highest tier of
// this process, it is for whichever task the scheduler chooses.
func (s *Slots) keptSlot() (pool.Slot, bool) {
	if s.kept.Load() == 0 {
		return pool.Slot{}, false
	}
	slot := s.kept.Swap(0)
	return pool.Slot{Index: int(slot - 1)}, slot != 0
}

// releaseKept releases the kept slot, if there is one.
func (s *Slots) releaseKept() {
	if slot := s.kept.Swap(0); slot != 0 {
		s.handle.Release(int(slot - 1))
	}
}

// offer notifies the scheduler of a granted slot. If the scheduler does not ask for one,
// because it is at a limit of its own, the slot goes to other processes at once, and
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
	s.handle.Want(s.want)
	if s.asked.Load() { // by a call that may still have seen this process in the mask
		s.want.Busy = false
		s.handle.Want(s.want)
	}
}

// Want sets the highest tier that waits in this process, and the number of waiters.
func (s *Slots) Want(tier stint.Priority, waiting int) {
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return
	}
	if waiting == 0 {
		clear(s.tickets[:])
		s.releaseKept()
	} else if since := &s.tickets[tierOf(tier)]; *since == 0 {
		*since = pool.Ticket(arena.Now()) | 1 // not 0
	}
	began := s.want.Count == 0
	s.want = pool.Want{
		Tier: tierOf(tier), Ticket: s.tickets[tierOf(tier)], Count: waiting,
		Busy: s.want.Busy && waiting > 0,
	}
	s.handle.Want(s.want)
	if waiting > 0 {
		r.watchLocked(began)
	}
}

// Expect announces a call of Sleep: until that call no goroutine is started to wait.
func (s *Slots) Expect() {
	s.region.mu.Lock()
	defer s.region.mu.Unlock()
	s.region.watch.expected++
}

// Sleep waits on behalf of all waiters for anything of the region in this process, in the
// calling goroutine, until ready reports true; if there are waiters then, a goroutine of
// the region takes over. It returns at once if there is a watcher already, or no waiter.
func (s *Slots) Sleep(ready func() bool) { s.region.watchUntil(ready) }

// Rouse makes Sleep call ready again.
func (s *Slots) Rouse() { s.region.rouse() }

// Usage returns the processes that hold slots or wait. It first recovers the slots of
// dead processes. If a process has ended and another one that inherited its open file
// keeps its slots, Usage names that other process, as [Inspect] does. It searches the
// processes of the machine for it, with the locks of the scheduler and the region held; the
// result is cached for 5 s.
func (s *Slots) Usage() stint.Usage {
	r := s.region
	r.mu.Lock()
	defer r.mu.Unlock()
	u := stint.Usage{Max: len(s.grants)}
	if r.closed.Load() {
		u.Err = ErrClosed.Error()
		return u
	}
	now := s.handle.Usage()
	u.Running, u.Waiting = now.Slots, now.Waiting
	found, all := make(survivors), &processes{proc: r.arena.Proc}
	for _, h := range now.Holders {
		if h.Dead {
			continue // it has died since
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
