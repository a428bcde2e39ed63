package sched

import (
	"context"
	"sync/atomic"
)

// Hold is a running function's hold on its slots.
//
// A function that waits for other work lends its slots: under a limit of 1 that work
// could never start otherwise. The first goroutine of the function that waits lends; the
// last one that goes on takes slots again, in front of everything that is queued. In
// between, the function as a whole has none. A call on a slot of another engine keeps the slots
// of its caller, and what waits within it lends both; they are taken back in the order of
// the calls. So as long as calls on several engines are nested in one order, no circle of
// functions waits for each other's slots.
type Hold struct {
	x *entry // that has the slots; written with the engine's lock held once others can see it

	// state is taskHolding, or the number of goroutines that wait within the
	// function, which have lent its slots, or taskEnded. It changes with the engine's
	// lock held, but for the step from taskHolding to taskEnded.
	state  atomic.Int32
	status atomic.Uint32 // of the call that the task is part of
}

const (
	taskEnded   = -1
	taskHolding = 0
)

// holdKey is what a context is asked for the innermost function that it runs within, a holder.
type holdKey struct{}

// holder is the context of a function that runs on slots.
type holder interface {
	hold() *Hold
	engine() *Engine
	outer() holder // the function that has called this one and waits for it, nil if there is none
}

func (j *groupJob) hold() *Hold     { return &j.Hold }
func (j *groupJob) engine() *Engine { return j.g.e }
func (j *groupJob) outer() holder   { return nil }

// innermost returns the function that ctx runs within, nil if it runs on no slot.
func innermost(ctx context.Context) holder {
	h, _ := ctx.Value(holdKey{}).(holder)
	return h
}

// Suspended is what a function has lent while it waits: nothing, if it is the zero value.
type Suspended struct {
	e     *Engine
	h     *Hold
	outer *Suspended // by the functions that have called this one
}

// Lend gives up the slots of the function that ctx runs within, and of those that have
// called it, for as long as it waits.
func Suspend(ctx context.Context) Suspended {
	f := innermost(ctx)
	if f == nil {
		return Suspended{}
	}
	return suspend(f, nil)
}

// lend is Lend for the functions from f to the one that is called by that which stop is of. What
// outlives its function lends nothing.
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

// lend counts one more goroutine of h that waits. first says that h's
// slot is free now; not ok, that h has ended and has no slot. The engine's lock is held.
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

// Resume ends what Lend began: the last goroutine of the function that waited gets its
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
	l.h.resume(0)
}

// lastToReturn counts one goroutine of h less that waits, and reports whether h
// now wants its slot back. If so, h counts as lent until it has it.
func (h *Hold) lastToReturn() bool {
	waits := h.state.Load()
	if waits > 1 {
		h.state.Store(waits - 1)
	}
	return waits == 1
}

// reclaim gets h its slots, first of all those that want some, out of freed
// ones if there are such. It is called with the lock held and returns without.
func (h *Hold) resume(freed int) {
	e := h.x.e
	x := e.waiter(h.x.Ask)
	e.suspended.resumes = append(e.suspended.resumes, x)
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

// returned marks h as holding slots again, those of x. If h has ended since,
// or another goroutine of it has begun to wait, it has no use for them.
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

// takeNested gets slots of e for a function that is called within another, which has the hold h
// on slots of e. Those are handed straight down, if they suffice, the key allows it and they are
// not shared; otherwise they go to what is next, and the call waits like any other. Then the
// functions between the two lend theirs, from caller on.
func (e *Engine) takeNested(ctx context.Context, a Ask, h *Hold, caller holder) (x *entry, parent Suspended, err error) {
	e.lock()
	first, nested := h.suspend()
	if nested {
		parent = Suspended{e: e, h: h}
	}
	if first {
		freed := int(h.x.Weight)
		e.yield(h.x)
		if e.cfg.Slots == nil && !e.killed.Load() && int(a.Weight) <= freed && e.queue.log().Keys().HasRoom(a.Key) {
			x = e.entry(a)
			e.queue.log().Keys().Admit(a.Key)
			e.holders.begin(x)
			freed -= int(a.Weight)
		}
		e.dispatch(freed, x == nil)
	}
	e.unlock()
	if x != nil {
		return x, parent, nil
	}
	var between Suspended
	if caller.hold() != h {
		between = suspend(caller, h)
	}
	x = e.waiter(a)
	x.nested = nested
	if err = x.take(ctx); err != nil {
		parent.Resume()
	}
	between.Resume()
	return x, parent, err
}

// end ends a hold on slots, and returns how many that frees: none if
// they have been lent to work that is still waited for.
func (h *Hold) end() (freed int) {
	if h.state.Swap(taskEnded) > taskHolding {
		h.x.e.suspended.n--
		return 0
	}
	h.x.e.yield(h.x)
	return int(h.x.Weight)
}

// endJob is end for a group's job. That it has ended matters only with the lock held, so its
// entry says so, which is cheaper to write than its state.
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
