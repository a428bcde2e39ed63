package sched

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintgo/stint/internal/backlog"
)

// Slots is a source of slots that are shared with other processes or hosts. The interface
// of the same name in the root package has the contract.
type Slots interface {
	Bind(notify func(), lost func(grant uint64, cause error))
	TryAcquire(tier int) (grant uint64, err error)
	Release(grant uint64)
	Want(tier, waiting int)
}

// Sleeper is an optional interface of Slots; the root package has the contract.
type Sleeper interface {
	Expect()
	Sleep(ready func() bool)
	Rouse()
}

// sharing is an engine's state for shared slots. With them every call takes the engine's
// lock, so the gate does not change while it is held.
type sharing struct {
	e       *Engine
	slots   Slots   // nil if slots are not shared
	sleeper Sleeper // the slots, if they implement it; else nil
	tier    int     // passed to the last Want
	waiting int     // passed to the last Want
	spare   *entry  // for the next take, or nil: one of the holders, without a grant

	// short says that the last dispatch ended because no slot was free: the slots then notify
	// when one comes free. Otherwise they may have stopped to, until they are tried again.
	short bool
}

func (s *sharing) bindTo(e *Engine) {
	s.e, s.slots = e, e.cfg.Slots
	s.sleeper, _ = s.slots.(Sleeper)
	s.slots.Bind(s.refresh, s.lose)
	s.refresh()
}

// refresh starts whatever may start.
func (s *sharing) refresh() {
	s.e.lock()
	s.e.dispatchAndUnlock(0, false)
}

// obtain takes a shared slot for x.
func (s *sharing) obtain(x *entry) (err error) {
	x.grant, err = s.slots.TryAcquire(int(x.Tier))
	if err != nil {
		s.short = errors.Is(err, ErrNoSlot)
	}
	return err
}

// take takes a shared slot for [Engine.Take] if nothing waits here: that needs no waiting
// goroutine. It returns nil if it has taken none. To add an entry to the holders and to remove
// it costs more than the slot, so an entry that keep has kept is used again.
func (s *sharing) take(a Ask) (x *entry) {
	e := s.e
	e.lock()
	if !e.closed && e.limits.paused == nil && e.nothingWaits() && e.gate.below(int(a.Tier)) {
		if s.spare == nil {
			s.spare = e.entries.get(a)
			s.spare.taken = true
			e.holders.begin(s.spare)
		}
		s.spare.Ask = a
		if s.obtain(s.spare) == nil {
			e.gate.word.Add(1)
			x, s.spare = s.spare, nil
		}
	}
	e.unlock()
	return x
}

// keep releases the shared slot of x and keeps x for the next take, if it comes from take and
// no other is kept. It reports whether this is the case. The lock is held.
func (s *sharing) keep(x *entry) bool {
	if !x.taken || s.spare != nil {
		return false
	}
	s.release(x)
	s.spare = x
	return true
}

// expect makes the goroutine of x, which is about to be queued, sleep in the shared slots
// if nothing waits or runs in this engine: then only another process can free its slot.
func (s *sharing) expect(x *entry) {
	if s.sleeper != nil && s.e.gate.running() == 0 && s.e.nothingWaits() {
		x.sleeps = true
		s.sleeper.Expect()
	}
}

// sleep waits in the shared slots, after expect, until x has claimed a slot, is granted
// one otherwise or refused, or the slots no longer need the goroutine. If ctx ends first,
// it withdraws x. If the context has a registered cancellation, that refuses x instead.
func (s *sharing) sleep(ctx context.Context, x *entry, registered bool) (claimed, canceled bool) {
	if !registered && ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.sleeper.Rouse)
		defer stop()
	}
	s.sleeper.Sleep(func() (ready bool) {
		canceled = canceled || !registered && ctx.Err() != nil && x.withdraw()
		claimed = !canceled && x.claim()
		return claimed || canceled || len(x.ready) > 0
	})
	return claimed, canceled
}

// claim starts whatever may start, and reports whether x is part of it. The goroutine of
// x calls it when it wakes in the shared slots. To notify it as all others are would take
// about half as long again as all else that follows a wake.
func (x *entry) claim() bool {
	e := x.e
	e.lock()
	defer e.unlock()
	if !x.waits {
		return false
	}
	e.claimant = x
	e.dispatch(0, false)
	claimed := e.claimant == nil
	e.claimant = nil
	return claimed
}

// complete reports whether dispatch, which has just started work, can stop: nothing waits, or
// given is 0, because the work takes just the slots that were freed, and short was set before
// the dispatch. To try for another slot, which notifies when it comes free, takes an eighth of a
// contended Acquire and Release. The gate needs no marks, because every call takes the lock.
func (s *sharing) complete(given int, short bool) bool {
	e := s.e
	switch {
	case e.blocked.any():
		return false
	case given == 0 && short:
		s.short = true
		return true
	default:
		return e.queue.empty() && !e.suspended.wanted()
	}
}

// regain gets a shared slot for a function that waits to resume. After an error other
// than ErrNoSlot the function resumes with a lost slot.
func (s *sharing) regain(x *entry) bool {
	err := s.obtain(x)
	if errors.Is(err, ErrNoSlot) {
		return false
	}
	x.lost = err != nil
	return true
}

// release releases the shared slot of x, unless it was lost or handed down.
func (s *sharing) release(x *entry) {
	if !x.lost && x.grant != 0 {
		s.want(s.e.gate.running() - 1)
		s.slots.Release(x.grant)
	}
	x.grant, x.lost = 0, false
}

// handDown gives the shared slot of from to to.
func (s *sharing) handDown(from, to *entry) {
	if s.slots != nil { // otherwise from may be the entry that all plain work shares
		to.grant, from.grant = from.grant, 0
	}
}

// bind records that t runs on the grant of x.
func (s *sharing) bind(x *entry, t *Task) {
	s.e.lock()
	x.task = t
	lost := x.lost
	s.e.unlock()
	if lost {
		t.cancel(ErrSlotLost)
	}
}

// lose cancels the work that runs on a grant that was taken away. The holder of a permit
// cannot be notified.
func (s *sharing) lose(grant uint64, cause error) {
	s.e.lock()
	var t *Task
	if x := s.e.holders.of(grant); x != nil {
		x.lost = true
		t = x.task
	}
	s.e.unlock()
	if t != nil {
		t.cancel(fmt.Errorf("%w: %w", ErrSlotLost, cause))
	}
}

// want reports to the slots what waits for one, if that has changed. It is called before
// a slot is released, with what could start on it, and after work has started.
func (s *sharing) want(running int) {
	e := s.e
	if e.queue.empty() && !e.suspended.wanted() {
		if s.waiting != 0 {
			s.waiting = 0
			s.slots.Want(s.tier, 0)
		}
		return
	}
	log := e.queue.log()
	tier, waiting := s.tier, log.Len()-log.Keys().Held()
	highest := -1
	if waiting > 0 && e.limits.paused == nil {
		highest = startable(log, running)
	}
	if highest < 0 {
		waiting = 0
	}
	resumes := &e.suspended.resumes.room
	waiting += resumes.n
	highest = max(highest, resumes.highest())
	if highest >= 0 {
		tier = highest
	}
	if tier != s.tier || waiting != s.waiting {
		s.tier, s.waiting = tier, waiting
		s.slots.Want(tier, waiting)
	}
}

// startable returns the highest tier that a slot could start, or -1. If the engine's own
// limits allow none, it is the tier that could start on a slot that this engine releases:
// nothing can start on another's slot then, so the tier gains nothing by it, and a
// released slot does not make a detour by another process.
func startable(log *backlog.Backlog[*entry], running int) (tier int) {
	tier = log.Highest(running)
	if tier < 0 && running > 0 {
		tier = log.Highest(running - 1)
	}
	return tier
}
