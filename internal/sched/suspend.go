package sched

import (
	"context"
	"sync/atomic"
)

// Hold is a running function's hold on its slots.
//
// A function that waits for other work suspends its slots: under a limit of 1 that work
// could never start otherwise. The first goroutine of the function that waits suspends
// them; the last one that continues resumes them, ahead of everything that is queued. In
// between, the function as a whole has none. A call on a slot of another engine keeps the
// slots of its caller, and a wait within it suspends both; they are resumed in the order
// of the calls. So as long as calls on several engines are nested in one order, no cycle
// of functions waits for each other's slots.
type Hold struct {
	x *entry // the entry with the slots; written with the engine's lock held once it is shared

	// state is taskHolding, or the number of waiting goroutines of the function, which
	// has suspended its slots, or taskEnded. It changes with the engine's lock held,
	// except for the step from taskHolding to taskEnded.
	state  atomic.Int32
	status atomic.Uint32 // of the call that the task is part of
}

const (
	taskEnded   = -1
	taskHolding = 0
)

// holdKey is the context key of the innermost function that a context runs in, a holder.
type holdKey struct{}

// holder is the context of a function that runs on slots.
type holder interface {
	hold() *Hold
	engine() *Engine
	outer() holder // the calling function, which waits for this one; nil if there is none
}

func (j *groupJob) hold() *Hold     { return &j.Hold }
func (j *groupJob) engine() *Engine { return j.g.e }
func (j *groupJob) outer() holder   { return nil }

// innermost returns the innermost function that ctx runs in, nil if it runs on no slot.
func innermost(ctx context.Context) holder {
	h, _ := ctx.Value(holdKey{}).(holder)
	return h
}

// Suspended is the slots that a function has suspended while it waits. The zero value is
// none.
type Suspended struct {
	e     *Engine
	h     *Hold
	outer *Suspended // slots of the calling functions
}

// Suspend releases the slots of the function that ctx runs in, and of its callers, for as
// long as it waits.
func Suspend(ctx context.Context) Suspended {
	f := innermost(ctx)
	if f == nil {
		return Suspended{}
	}
	return suspend(f, nil)
}

// suspend is Suspend for the functions from f outwards up to, and without, the one with
// the hold stop. For a function that has ended it does nothing.
func suspend(f holder, stop *Hold) (l Suspended) {
	e, h := f.engine(), f.hold()
	if h.state.Load() == taskEnded {
		return Suspended{}
	}
	if caller := f.outer(); caller != nil && caller.hold() != stop {
		l.outer = new(suspend(caller, stop))
	}
	e.lock()
	defer e.unlock()
	first, ok := h.suspend()
	if !ok {
		return l
	}
	if first {
		e.yield(h.x)
		e.release(int(h.x.Weight))
	}
	l.e, l.h = e, h
	return l
}

// suspend counts one more waiting goroutine of h. first says that h's slot is free now;
// ok is false if h has ended and has no slot. The engine's lock is held.
func (h *Hold) suspend() (first, ok bool) {
	for {
		waits := h.state.Load()
		if waits == taskEnded || h.x == &h.x.e.gone {
			return false, false
		}
		if h.state.CompareAndSwap(waits, waits+1) {
			if waits == taskHolding {
				h.x.e.suspended.n++
			}
			return waits == taskHolding, true
		}
	}
}

// Resume ends what Suspend began: the last waiting goroutine of the function gets its
// slots again, and waits until it has them.
func (l Suspended) Resume() {
	if l.outer != nil {
		l.outer.Resume()
	}
	if l.h == nil {
		return
	}
	l.e.lock()
	if !l.h.lastToReturn() {
		l.e.unlock()
		return
	}
	l.h.await(l.h.wantBack(), 0)
}

// lastToReturn counts one waiting goroutine of h less, and reports whether h now needs
// its slots. If so, h counts as suspended until it has them.
func (h *Hold) lastToReturn() bool {
	waits := h.state.Load()
	if waits > 1 {
		h.state.Store(waits - 1)
	}
	return waits == 1
}

// wantBack makes h the last of the functions that wait to resume. The lock is held, and
// await follows.
func (h *Hold) wantBack() *entry {
	e := h.x.e
	x := e.entries.waiter(h.x.Ask)
	e.suspended.want(x)
	return x
}

// await waits until x, which wantBack has returned, is granted h's slots, out of the freed
// ones if there are any. It is called with the lock held and returns without it.
func (h *Hold) await(x *entry, freed int) {
	e := h.x.e
	e.dispatchAndUnlock(freed, false)
	<-x.ready

	e.lock()
	h.returned(x)
	var lost *Task
	if e.cfg.Slots != nil && h.state.Load() == taskHolding && h.x.lost {
		lost = h.x.task
	}
	x.recycle()
	e.unlock()
	if lost != nil {
		lost.cancel(ErrSlotLost)
	}
}

// runs reports whether the function still runs. The lock is held.
func (h *Hold) runs() bool {
	return h != nil && h.state.Load() != taskEnded && h.x != &h.x.e.gone
}

// returned marks h as holding slots again, those of x. If h has ended since, or another
// goroutine of it has begun to wait, it releases them.
func (h *Hold) returned(x *entry) {
	e := x.e
	waits := h.state.Load()
	if waits == 1 {
		if e.tracks {
			e.holders.replace(x, h.x)
		}
		h.state.Store(taskHolding)
		e.suspended.n--
		return
	}
	if waits > 1 {
		h.state.Store(waits - 1)
	}
	e.yield(x)
	e.release(int(x.Weight))
}

// takeNested gets slots of e for a function that is called within another one with the
// hold h on slots of e. It hands those slots down if they suffice, the key allows it and
// no shared slot was lost. Otherwise they go to what is next, and the call waits like any
// other; then the functions between the two, from caller outwards, suspend theirs. outer is h if
// it has suspended its slots.
func (e *Engine) takeNested(ctx context.Context, a Ask, h *Hold, caller holder) (x *entry, outer *Hold, err error) {
	e.lock()
	first, nested := h.suspend()
	if nested {
		outer = h
	}
	if first {
		freed := int(h.x.Weight)
		e.yieldKey(h.x)
		if !h.x.lost && !e.killed.Load() && int(a.Weight) <= freed && e.queue.log().Keys().HasRoom(a.Key) {
			x = e.entries.get(a)
			e.shared.handDown(h.x, x)
			e.queue.log().Keys().Admit(a.Key)
			e.holders.begin(x)
			freed -= int(a.Weight)
		}
		e.yieldRest(h.x)
		e.dispatch(freed, x == nil)
	}
	e.unlock()
	if x != nil {
		return x, outer, nil
	}
	var between Suspended
	if caller.hold() != h {
		between = suspend(caller, h)
	}
	x = e.entries.waiter(a)
	x.nested = nested
	if err = x.take(ctx); err != nil {
		Suspended{e: e, h: outer}.Resume()
	}
	between.Resume()
	return x, outer, err
}

// end ends a hold on slots, and returns how many slots it frees: none if they are
// suspended for work that is still waited for.
func (h *Hold) end() (freed int) {
	if h.state.Swap(taskEnded) > taskHolding {
		h.x.e.suspended.n--
		return 0
	}
	h.x.e.yield(h.x)
	return int(h.x.Weight)
}

// endJob is end for a group's job. That the job has ended matters only with the lock
// held, so its entry records it, which is cheaper to write than its state.
func (h *Hold) endJob() (freed int) {
	if h.state.Load() != taskHolding {
		return h.end()
	}
	x := h.x
	e := x.e
	h.x = &e.gone
	if x == &e.plain {
		return 1
	}
	e.yield(x)
	return int(x.Weight)
}
