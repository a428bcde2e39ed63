package pool

import "errors"

// ErrFull is what [Pool.Join] answers when as many participants live as there
// are entries.
var ErrFull = errors.New("pool: no entry for another participant is free")

// Member is one participant. Take of one limit needs a lock of the caller, and so
// do Want, Check, Reap, Sweep and Usage together, with a lock that may be another
// one. The other methods may be called at any time.
type Member struct {
	pool  *Pool
	index int
	bit   uint64 // in masks
	held  uint64 // the word of a slot that it holds
	hints []int  // of each limit: the slot that is tried first

	sights [][]sight // of each limit's slots: see takeBack
}

// Join makes the caller a participant. It fails with [ErrFull].
func (p *Pool) Join(pid int, name string) (*Member, error) {
	for i := range p.shape.Participants {
		if !p.host.Lock(place(i)) {
			continue
		}
		era := p.settle(i)
		joined := era != 0
		if joined {
			p.sign(i, pid, name)
			p.state(i).store(stateOf(era))
		}
		p.host.Unlock(place(i))
		if joined {
			return p.member(i, era), nil
		}
	}
	return nil, ErrFull
}

// settle takes the life of the participant i for the caller and returns its
// generation, or 0 if somebody has it.
func (p *Pool) settle(i int) (era uint64) {
	p.examine(i)
	was := p.state(i).load()
	if isLive(was) || !p.host.Lock(life(i)) {
		return 0
	}
	p.vacate(i)
	return eraOf(was) + 1
}

func (p *Pool) member(i int, era uint64) *Member {
	m := &Member{pool: p, index: i, bit: 1 << i, held: owned(i, era)}
	for l := range p.limits {
		slots := p.limits[l].count
		m.hints = append(m.hints, i*slots/p.shape.Participants)
		m.sights = append(m.sights, make([]sight, slots))
	}
	return m
}

// Leave gives back all that the participant has, and its place. m is not to be
// used afterwards.
func (m *Member) Leave() {
	m.pool.state(m.index).store(gone(m.pool.state(m.index).load()))
	m.pool.vacate(m.index)
	m.pool.host.Unlock(life(m.index))
}

// vacate gives back what the participant i had. Only who holds the lock of its
// life may do it, and i is gone.
func (p *Pool) vacate(i int) {
	for n := range p.limits {
		l := &p.limits[n]
		l.want(i).store(0)
		l.mask.clear(1 << i)
		p.reclaim(l)
	}
}

// Index is the participant's place in the table.
func (m *Member) Index() int { return m.index }

// Slot is a slot that was taken.
type Slot struct {
	Index     int
	Abandoned bool // whoever held it last has died
}

// Take takes a slot for an entry of a tier: one that was granted to m, or else a
// free one, unless somebody of this tier or a higher one waits elsewhere. It
// does not block.
func (m *Member) Take(limit, tier int) (Slot, bool) {
	l := &m.pool.limits[limit]
	if l.want(m.index).load() != 0 {
		for s := range l.count {
			if seen := l.slot(s).load(); m.mayAccept(seen) && l.slot(s).cas(seen, m.held) {
				return Slot{s, seen&abandoned != 0}, true
			}
		}
	}
	if l.mask.load() != 0 && m.Rival(limit) >= tier {
		return Slot{}, false
	}
	s := m.hints[limit]
	for range l.count {
		// A grant that came when m no longer waited is as good as a free slot.
		if seen := l.slot(s).load(); (isFree(seen) || m.mayAccept(seen)) && l.slot(s).cas(seen, m.held) {
			m.hints[limit] = s
			return Slot{s, seen&abandoned != 0}, true
		}
		s = l.next(s)
	}
	return Slot{}, false
}

// mayAccept reports whether a slot is granted to m.
func (m *Member) mayAccept(slot uint64) bool { return slot&^abandoned == m.held|granted }

// Release gives back a slot that m holds. It reports false, and does nothing, if
// m does not hold it.
func (m *Member) Release(limit, slot int) bool {
	l := &m.pool.limits[limit]
	if !l.slot(slot).cas(m.held, 0) {
		return false
	}
	m.pool.place(l, slot)
	return true
}

// Rival returns the highest tier that waits elsewhere, or -1.
func (m *Member) Rival(limit int) (tier int) {
	l := &m.pool.limits[limit]
	others := l.mask.load() &^ m.bit
	if others == 0 {
		return -1
	}
	_, want := l.best(others)
	return tierOf(want)
}

// Want says what of m waits, until it says otherwise. Only who waits is granted
// slots: m rings when it has one, which Take takes. A slot that was granted to
// m comes back as soon as nobody waits.
func (m *Member) Want(limit int, want Want) {
	l := &m.pool.limits[limit]
	l.want(m.index).store(want.word())
	if want.Count > 0 {
		m.enter(limit)
		return
	}
	l.mask.clear(m.bit)
	for s := range l.count {
		if seen := l.slot(s).load(); m.mayAccept(seen) && l.slot(s).cas(seen, freed(seen)) {
			m.pool.place(l, s)
		}
	}
}

// enter puts m into the mask, if it is not there.
func (m *Member) enter(limit int) {
	l := &m.pool.limits[limit]
	if l.mask.load()&m.bit == 0 {
		l.mask.set(m.bit)
		for s := range l.count {
			m.pool.place(l, s)
		}
	}
}

// Check is for one who waits and was woken. It reports whether a slot was granted
// to m, and else sees to it that m is in the mask.
func (m *Member) Check(limit int) bool {
	l := &m.pool.limits[limit]
	for s := range l.count {
		if m.mayAccept(l.slot(s).load()) {
			return true
		}
	}
	m.enter(limit)
	return false
}

// Ring wakes m, or keeps it from falling asleep.
func (m *Member) Ring() { m.pool.ring(m.index) }

// Bell returns what [Pool.Bell] of m was.
func (m *Member) Bell() uint64 { return m.pool.entry(m.index, entryBell).load() }
