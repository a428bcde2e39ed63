package pool

import "errors"

// ErrFull is what [Pool.Join] answers when as many participants live as there
// are entries.
var ErrFull = errors.New("pool: no entry for another participant is free")

// Member is one participant. Take and Try of one [Seat] need a lock of the caller, and so
// do Want, Check, Reap, ReapOwners, Sweep and Usage together, with a lock that may be
// another one. The other methods may be called at any time.
type Member struct {
	pool  *Pool
	index int
	bit   uint64 // in masks
	held  uint64 // the word of a slot that it holds
	seats []Seat // of each limit

	sights [][]sight // of each limit's slots: see takeBack
	stalls []stall   // of each bucket: see Overtake
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
			p.entry(0, entryJoins).increment()
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
	m := &Member{pool: p, index: i, bit: 1 << i, held: owned(i, era), stalls: make([]stall, len(p.buckets))}
	for l := range p.limits {
		m.seats = append(m.seats, newSeat(m, &p.limits[l]))
		m.sights = append(m.sights, make([]sight, p.limits[l].count))
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
	for n := range p.buckets {
		b := &p.buckets[n]
		b.want(i).store(0)
		b.mask.clear(1 << i)
		p.pass(b, i)
	}
}

// Seat returns m's part in a limit.
func (m *Member) Seat(limit int) *Seat { return &m.seats[limit] }

// Index is the participant's place in the table.
func (m *Member) Index() int { return m.index }

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
// m comes back as soon as nobody waits, or who waits is busy.
func (m *Member) Want(limit int, want Want) {
	l := &m.pool.limits[limit]
	l.want(m.index).store(want.word())
	if want.Count > 0 && !want.Busy {
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

// Touch changes what Bell returns, so that m does not fall asleep. If it sleeps it sleeps on.
func (m *Member) Touch() { m.pool.entry(m.index, entryBell).increment() }

// Bell returns what [Pool.Bell] of m was.
func (m *Member) Bell() uint64 { return m.pool.entry(m.index, entryBell).load() }
