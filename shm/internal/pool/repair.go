package pool

// Reap gives back what the dead had. Any number of participants may do it at the
// same time, and one that dies or is stopped while it does holds nobody up: to
// find somebody dead is one compare-and-swap, and so is each slot that comes back.
func (m *Member) Reap() {
	p := m.pool
	for i := range p.shape.Participants {
		if i != m.index {
			p.examine(i)
		}
	}
	for n := range p.limits {
		p.reclaim(&p.limits[n])
	}
}

// ReapOwners is Reap for one who does not wait, and was refused a slot of a limit: it
// asks the system only about those to whom the slots belong. A slot that comes back,
// or that nobody has placed, may go to one who waited and has died, so those are
// asked about as well. And whoever was about to grant one may have slept until its
// receiver no longer waited, and then died: nobody who waits would take that back.
func (m *Member) ReapOwners(limit int) {
	l := &m.pool.limits[limit]
	for dead := true; dead; {
		m.pool.takeUnwanted(l)
		m.pool.reclaim(l)
		dead = m.examineOwners(l)
	}
}

// takeUnwanted frees slots that were granted to those who do not wait.
func (p *Pool) takeUnwanted(l *limit) {
	for s := range l.count {
		if seen := l.slot(s).load(); seen&granted != 0 && l.want(indexOf(seen)).load() == 0 {
			l.slot(s).cas(seen, freed(seen))
		}
	}
}

// examineOwners is examine for all to whom the slots of a limit belong, and reports
// whether one of them is dead.
func (m *Member) examineOwners(l *limit) (dead bool) {
	asked := m.bit
	for s := range l.count {
		slot := l.slot(s).load()
		if i := indexOf(slot); !isFree(slot) && asked&(1<<i) == 0 {
			asked |= 1 << i
			dead = m.pool.examine(i) || dead
		}
	}
	return dead
}

// examine marks the participant i as gone if it is dead, and reports whether it is.
// The state is read first: the generation that was there then is not the one that
// has the lock later.
func (p *Pool) examine(i int) (dead bool) {
	if was := p.state(i).load(); isLive(was) && !p.host.Held(life(i)) {
		p.state(i).cas(was, gone(was))
		return true
	}
	return false
}

// reclaim frees the slots whose owners are gone: those of all of them, because a
// slot may be granted to one that was found dead just before. And it places all
// slots that are free: the dead may have freed them. A slot that is granted to a
// participant whose process is stopped goes on to the next.
func (p *Pool) reclaim(l *limit) {
	for s := range l.count {
		if seen := l.slot(s).load(); !isFree(seen) && !p.lives(seen) {
			l.slot(s).cas(seen, freed(seen))
		}
		p.place(l, s)
		p.passStopped(l, s)
	}
}

// passStopped frees the slot s and places it again, as long as it is granted to a
// participant that can be seen to be stopped. That one waits on, but out of the mask until
// it runs again.
func (p *Pool) passStopped(l *limit, s int) {
	for {
		seen := l.slot(s).load()
		if seen&granted == 0 || !p.host.Stopped(indexOf(seen)) {
			return
		}
		if l.slot(s).cas(seen, freed(seen)) {
			p.place(l, s)
		}
	}
}

// Sweep does what Reap does, and takes back slots that were granted and have not
// been accepted for some periods: their receiver is stopped where that cannot be seen, or
// is too busy. Whoever waits calls it when nothing
// has happened for a period, and then [Member.Check].
//
// Reap asks the system about every participant, so of all who wait one does it in
// each period. Sweep reports whether m was that one. The time is one that all read
// alike.
func (m *Member) Sweep(now, period int64) (reaped bool) {
	m.takeAllBack()
	stamp := m.pool.entry(0, entryReaped)
	if last := stamp.load(); now-int64(last) < period || !stamp.cas(last, uint64(now)) {
		return false
	}
	m.Reap()
	return true
}

func (m *Member) takeAllBack() {
	for n := range m.pool.limits {
		m.takeBack(&m.pool.limits[n], m.sights[n])
	}
}

// sight is how often one sweep after the other has seen the same grant.
type sight struct {
	slot  uint64
	times int
}

// periodsMax is how many periods a grant may stay without being accepted.
const periodsMax = 2

// takeBack frees the slots whose grants are too old. Their receiver stays in
// line, but out of the mask until it runs again.
func (m *Member) takeBack(l *limit, sights []sight) {
	for s := range l.count {
		seen := l.slot(s).load()
		if seen&granted == 0 || indexOf(seen) == m.index {
			sights[s] = sight{}
			continue
		}
		if sights[s].slot != seen {
			sights[s] = sight{slot: seen}
		}
		if sights[s].times++; sights[s].times > periodsMax && l.slot(s).cas(seen, freed(seen)) {
			m.pool.place(l, s)
		}
	}
}
