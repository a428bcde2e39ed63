package sched

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintgo/stint/internal/backlog"
)

// Slots is where slots come from when they are shared with other processes or hosts. The
// root package's interface of that name has the contract.
type Slots interface {
	Bind(notify func(), lost func(grant uint64, cause error))
	TryAcquire(tier int) (grant uint64, err error)
	Release(grant uint64)
	Want(tier, waiting int)
}

// Sleeper is what Slots may be as well; the root package has the contract.
type Sleeper interface {
	Expect()
	Sleep(ready func() bool)
	Rouse()
}

// sharing is what an engine keeps of slots that are shared. With them every call takes the
// engine's lock, so the gate does not change while it is held.
type sharing struct {
	e       *Engine
	slots   Slots   // nil if the slots are the engine's own
	sleeper Sleeper // the slots, if they are one
	tier    int     // that is wanted,
	waiting int     // by so many
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
	return err
}

// take takes a shared slot at once, for [Engine.Take], if nothing waits here: that needs no
// goroutine that can wait. It returns nil if it has not.
func (s *sharing) take(a Ask) *entry {
	e := s.e
	e.lock()
	defer e.unlock()
	if !e.nothingWaits() || e.refuses(1, false) != nil || !e.admits(a, e.gate.running()) {
		return nil
	}
	x := e.entry(a)
	if s.obtain(x) != nil {
		x.recycle()
		return nil
	}
	e.gate.word.Add(1)
	e.holders.begin(x)
	return x
}

// expect has the goroutine of x, which is about to be queued, sleep in the shared
// slots if nothing else of this engine can have them wake it: nothing waits or runs
// here, so the slot comes from elsewhere.
func (s *sharing) expect(x *entry) {
	if s.sleeper != nil && s.e.gate.running() == 0 && s.e.nothingWaits() {
		x.sleeps = true
		s.sleeper.Expect()
	}
}

// sleep waits in the shared slots, after expect, until x is granted or
// refused, or the slots can do without. If ctx ends first, it withdraws x: canceled. A
// context that is watched has x refused instead.
func (s *sharing) sleep(ctx context.Context, x *entry, registered bool) (canceled bool) {
	if !registered && ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.sleeper.Rouse)
		defer stop()
	}
	s.sleeper.Sleep(func() (ready bool) {
		canceled = canceled || !registered && ctx.Err() != nil && x.withdraw()
		return canceled || len(x.ready) > 0
	})
	return canceled
}

// regain gets a shared slot for a task that wants its own back. If none can be
// had, it goes on with a lost one.
func (s *sharing) regain(x *entry) bool {
	err := s.obtain(x)
	if errors.Is(err, ErrNoSlot) {
		return false
	}
	x.lost = err != nil
	return true
}

// give releases the shared slot of x, unless it was lost.
func (s *sharing) give(x *entry) {
	if !x.lost {
		s.want(s.e.gate.running() - 1)
		s.slots.Release(x.grant)
	}
	x.grant, x.lost = 0, false
}

// bind says whose work runs on the grant of x.
func (s *sharing) bind(x *entry, t *Task) {
	s.e.lock()
	x.task = t
	lost := x.lost
	s.e.unlock()
	if lost {
		t.cancel(ErrSlotLost)
	}
}

// lose ends the work that runs on a grant that was taken away. A caller that has a permit
// for it cannot be reached.
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

// want announces what waits for a slot, if that has changed. It is called before a
// slot goes back, for what could start then, and once it is known what has started.
func (s *sharing) want(running int) {
	e := s.e
	if e.queue.empty() && !e.suspended.wanted() && s.waiting == 0 {
		return
	}
	log := e.queue.log()
	tier, waiting := s.tier, log.Len()-log.Keys().Held()
	highest := -1
	if waiting > 0 && e.paused == nil {
		highest = startable(log, running)
	}
	if highest < 0 {
		waiting = 0
	}
	for _, x := range e.suspended.resumes {
		if log.Keys().HasRoom(x.Key) {
			highest = max(highest, int(x.Tier))
			waiting++
		}
	}
	if highest >= 0 {
		tier = highest
	}
	if tier != s.tier || waiting != s.waiting {
		s.tier, s.waiting = tier, waiting
		s.slots.Want(tier, waiting)
	}
}

// startable returns the tier that a slot would be spent on, or -1. If that is none
// because of limits of our own, it is the tier for one of our own that comes back:
// then nothing can start on another's slot, so the tier is no advantage, and ours
// does not go round by another process for the next task.
func startable(log *backlog.Backlog[*entry], running int) (tier int) {
	tier = log.Highest(running)
	if tier < 0 && running > 0 {
		tier = log.Highest(running - 1)
	}
	return tier
}
