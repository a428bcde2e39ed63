package pool

import "sync/atomic"

// Seat is a participant's part in one limit. What it takes to have a free slot
// and to give it back is here, without the way through the pool: that would cost
// as much as the two compare-and-swaps. So would the hook of the search: Try and
// Drop are the short ways of Take and Release without it, for the compiler to put
// where they are called.
type Seat struct {
	mask  *word
	slots []*word
	hint  int    // the slot that is tried first
	held  uint64 // the word of a slot that the participant holds

	member *Member
	limit  *limit
}

func newSeat(m *Member, l *limit) Seat {
	s := Seat{mask: l.mask, hint: m.index * l.count / m.pool.shape.Participants, held: m.held, member: m, limit: l}
	for i := range l.count {
		s.slots = append(s.slots, l.slot(i))
	}
	return s
}

// Slot is a slot that was taken.
type Slot struct {
	Index     int
	Abandoned bool // whoever held it last has died
}

// Try takes the slot that is tried first, if it is free and nobody waits. If not,
// Take may find another.
func (s *Seat) Try() (slot int, ok bool) {
	return s.hint, atomic.LoadUint64((*uint64)(s.mask)) == 0 &&
		atomic.CompareAndSwapUint64((*uint64)(s.slots[s.hint]), 0, s.held)
}

// Take takes a slot for an entry of a tier, unless somebody of this tier or a
// higher one waits elsewhere: a free one, or one that was granted to the
// participant. It does not block.
func (s *Seat) Take(tier int) (Slot, bool) {
	if s.mask.load() == 0 && s.slots[s.hint].cas(0, s.held) {
		return Slot{Index: s.hint}, true
	}
	return s.search(tier)
}

// search is Take where somebody waits, or the first slot is not free.
func (s *Seat) search(tier int) (Slot, bool) {
	m, l := s.member, s.limit
	if l.want(m.index).load() != 0 {
		for i, slot := range s.slots {
			if seen := slot.load(); m.mayAccept(seen) && slot.cas(seen, s.held) {
				return Slot{i, seen&abandoned != 0}, true
			}
		}
	}
	if others := s.mask.load() &^ m.bit; others != 0 {
		if _, want := l.best(others); tierOf(want) >= tier {
			return Slot{}, false
		}
	}
	i := s.hint
	for range s.slots {
		// A grant that came when nobody waited any more is as good as a free slot.
		if seen := s.slots[i].load(); (isFree(seen) || m.mayAccept(seen)) && s.slots[i].cas(seen, s.held) {
			s.hint = i
			return Slot{i, seen&abandoned != 0}, true
		}
		i = l.next(i)
	}
	return Slot{}, false
}

// mayAccept reports whether a slot is granted to m.
func (m *Member) mayAccept(slot uint64) bool { return slot&^abandoned == m.held|granted }

// InLine reports whether the participant is one of those to whom a slot that comes
// free may be granted.
func (s *Seat) InLine() bool { return s.mask.load()&s.member.bit != 0 }

// Release gives back a slot that the participant holds, and reports whether
// somebody waits. It does nothing if the participant does not hold it.
func (s *Seat) Release(slot int) (waited bool) {
	if !s.slots[slot].cas(s.held, 0) || s.mask.load() == 0 {
		return false
	}
	s.Place(slot)
	return true
}

// Drop is Release but for the last of it: if it reports that somebody waits, Place
// has to follow.
func (s *Seat) Drop(slot int) (wanted bool) {
	return atomic.CompareAndSwapUint64((*uint64)(s.slots[slot]), s.held, 0) &&
		atomic.LoadUint64((*uint64)(s.mask)) != 0 // in this order: who comes meanwhile finds it free
}

// Place grants a slot, if it is free, to who waits.
func (s *Seat) Place(slot int) { s.member.pool.place(s.limit, slot) }

// Pass is Release, but the slot goes to this participant only if nobody else waits.
func (s *Seat) Pass(slot int) { s.handOn(slot, (*limit).best) }

// Yield is Pass, but the slot goes to who has waited for longest, in whatever tier.
func (s *Seat) Yield(slot int) { s.handOn(slot, (*limit).oldest) }

func (s *Seat) handOn(slot int, first order) {
	if s.slots[slot].cas(s.held, 0) && s.mask.load() != 0 {
		s.member.pool.offer(s.limit, slot, ^s.member.bit, first)
		s.member.pool.place(s.limit, slot)
	}
}
