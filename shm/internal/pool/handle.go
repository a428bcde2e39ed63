package pool

import "sync/atomic"

// Handle is a participant's access to one limit: it takes, releases and waits for slots. It
// has what is needed to take and release a free slot, because the way through the pool
// would cost as much as the two compare-and-swaps. The step hook of the search would cost
// as much again: Try and Drop are Take and Release without it, short enough for the
// compiler to inline.
type Handle struct {
	mask  *word
	slots []*word
	hint  int    // the slot that is tried first
	held  uint64 // the word of a slot that the participant holds

	member *Member
	limit  *limit
}

func newHandle(m *Member, l *limit) Handle {
	h := Handle{mask: l.mask, hint: m.index * l.count / m.pool.shape.Participants, held: m.held, member: m, limit: l}
	for i := range l.count {
		h.slots = append(h.slots, l.slot(i))
	}
	return h
}

// Slot is a slot that Take returned.
type Slot struct {
	Index     int
	Abandoned bool // the previous holder has died
}

// Try takes the slot that is tried first, if it is free and the mask is empty. If it
// fails, Take may find another slot.
func (h *Handle) Try() (slot int, ok bool) {
	return h.hint, atomic.LoadUint64((*uint64)(h.mask)) == 0 &&
		atomic.CompareAndSwapUint64((*uint64)(h.slots[h.hint]), 0, h.held)
}

// Take takes a slot for an entry of the given tier: one that was granted to this
// participant, or a free one. It fails if no slot is left, or if another participant
// waits in this tier or a higher one. It does not block.
func (h *Handle) Take(tier int) (Slot, bool) {
	if h.mask.load() == 0 && h.slots[h.hint].cas(0, h.held) {
		return Slot{Index: h.hint}, true
	}
	return h.search(tier)
}

// search is the part of Take for when the mask is not empty or the first slot is not
// free.
func (h *Handle) search(tier int) (Slot, bool) {
	m, l := h.member, h.limit
	if l.want(m.index).load() != 0 {
		for i, slot := range h.slots {
			if seen := slot.load(); h.mayAccept(seen) && slot.cas(seen, h.held) {
				return Slot{i, seen&abandoned != 0}, true
			}
		}
	}
	if others := h.mask.load() &^ m.bit; others != 0 {
		if _, want := l.best(others); tierOf(want) >= tier {
			return Slot{}, false
		}
	}
	i := h.hint
	for range h.slots {
		// A grant that arrived after the participant stopped waiting is as good as a free
		// slot.
		if seen := h.slots[i].load(); (isFree(seen) || h.mayAccept(seen)) && h.slots[i].cas(seen, h.held) {
			h.hint = i
			return Slot{i, seen&abandoned != 0}, true
		}
		i = l.next(i)
	}
	return Slot{}, false
}

// mayAccept reports whether a slot is granted to the participant.
func (h *Handle) mayAccept(slot uint64) bool { return slot&^abandoned == h.held|granted }

// Queued reports whether the participant is in the mask: a slot that is freed may be
// granted to it.
func (h *Handle) Queued() bool { return h.mask.load()&h.member.bit != 0 }

// Release releases a slot that the participant holds, and reports whether participants
// wait. It does nothing if the participant does not hold the slot.
func (h *Handle) Release(slot int) (waited bool) {
	if !h.slots[slot].cas(h.held, 0) || h.mask.load() == 0 {
		return false
	}
	h.Place(slot)
	return true
}

// Undo reverses a Take whose slot is not used: if the previous holder has died, the next
// one is informed of that.
func (h *Handle) Undo(slot Slot) {
	var was uint64
	if slot.Abandoned {
		was = abandoned
	}
	if h.slots[slot.Index].cas(h.held, was) && h.mask.load() != 0 {
		h.Place(slot.Index)
	}
}

// Drop is Release without its last step: if it reports true, participants wait and the
// caller must call Place.
func (h *Handle) Drop(slot int) (wanted bool) {
	return atomic.CompareAndSwapUint64((*uint64)(h.slots[slot]), h.held, 0) &&
		atomic.LoadUint64((*uint64)(h.mask)) != 0 // in this order: a participant that enters in between finds it free
}

// Place grants a slot, if it is free, to the first participant that waits.
func (h *Handle) Place(slot int) { h.member.pool.place(h.limit, slot) }

// Pass is Release, but this participant receives the slot only if no other waits.
func (h *Handle) Pass(slot int) { h.handOn(slot, (*queue).best) }

// Yield is Pass, but the slot goes to the participant that has waited longest, in any
// tier.
func (h *Handle) Yield(slot int) { h.handOn(slot, (*queue).oldest) }

func (h *Handle) handOn(slot int, first order) {
	if h.slots[slot].cas(h.held, 0) && h.mask.load() != 0 {
		h.member.pool.offer(h.limit, slot, ^h.member.bit, first)
		h.member.pool.place(h.limit, slot)
	}
}

// Rival returns the highest tier that waits in other participants, or -1.
func (h *Handle) Rival() (tier int) {
	others := h.mask.load() &^ h.member.bit
	if others == 0 {
		return -1
	}
	_, want := h.limit.best(others)
	return tierOf(want)
}

// Want sets the want of the participant, which is valid until the next call. Slots are
// granted only to participants that wait: a grant rings it, and Take accepts it. If
// want.Count is 0 or want.Busy is set, slots that were granted to it are freed.
func (h *Handle) Want(want Want) {
	m, l := h.member, h.limit
	l.want(m.index).store(want.word())
	if want.Count > 0 && !want.Busy {
		h.enter()
		return
	}
	l.mask.clear(m.bit)
	for s := range l.count {
		if seen := l.slot(s).load(); h.mayAccept(seen) && l.slot(s).cas(seen, freed(seen)) {
			m.pool.place(l, s)
		}
	}
}

// enter puts the participant into the mask, if it is not in it.
func (h *Handle) enter() {
	m, l := h.member, h.limit
	if l.mask.load()&m.bit == 0 {
		l.mask.set(m.bit)
		for s := range l.count {
			m.pool.place(l, s)
		}
	}
}

// Check reports whether a slot is granted to the participant. If none is, it makes sure
// that the participant is in the mask. Waiters call it after they were woken.
func (h *Handle) Check() bool {
	for _, slot := range h.slots {
		if h.mayAccept(slot.load()) {
			return true
		}
	}
	h.enter()
	return false
}
