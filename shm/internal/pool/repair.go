package pool

// Reap recovers what dead participants held. Any number of participants may call it
// concurrently; one that dies or is stopped within it does not delay the others: marking
// a participant as dead is one compare-and-swap, and so is recovering a slot.
func (m *Member) Reap() {
	p := m.pool
	for i := range p.shape.Participants {
		if i != m.index {
			p.examine(i)
		}
	}
	for n := range p.limits {
		p.recoverSlots(&p.limits[n])
	}
}

// ReapOwners is Reap for a caller that does not wait and was refused a slot of a limit:
// it queries the system only for the owners of the slots. A slot that it recovers or
// places may go to a waiter that has died, so waiters are queried as well. A participant
// that was about to grant a slot may have slept until its receiver no longer waited, and
// then died; ReapOwners takes that grant back too, as no waiter would.
func (h *Handle) ReapOwners() {
	m, l := h.member, h.limit
	for dead := true; dead; {
		m.pool.takeUnwanted(l)
		m.pool.recoverSlots(l)
		dead = m.examineOwners(l)
	}
}

// takeUnwanted frees slots that were granted to participants that do not wait.
func (p *Pool) takeUnwanted(l *limit) {
	for s := range l.count {
		if seen := l.slot(s).load(); seen&granted != 0 && l.want(indexOf(seen)).load() == 0 {
			l.slot(s).cas(seen, freed(seen))
		}
	}
}

// examineOwners calls examine for all owners of a limit's slots, and reports whether one
// of them is dead.
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

// examine marks participant i as gone if it is dead, and reports whether it is. It reads
// the state before the lock: if another participant joins in between, its generation
// differs and the compare-and-swap fails.
func (p *Pool) examine(i int) (dead bool) {
	if was := p.state(i).load(); isLive(was) && !p.host.Held(lifeLock(i)) {
		p.state(i).cas(was, gone(was))
		return true
	}
	return false
}

// recoverSlots frees the slots of all owners that are gone, not only of those that this call
// found: a slot may be granted to a participant that was marked as dead just before. It
// places all free slots, since participants may have died right after they freed one. A
// slot that is granted to a stopped process is granted to the next waiter instead.
func (p *Pool) recoverSlots(l *limit) {
	for s := range l.count {
		if seen := l.slot(s).load(); !isFree(seen) && !p.lives(seen) {
			l.slot(s).cas(seen, freed(seen))
		}
		p.place(l, s)
		p.passStopped(l, s)
	}
}

// passStopped frees the slot s and places it again, as long as it is granted to a
// participant that the host reports as stopped. That participant keeps waiting, but is
// out of the mask until it runs again.
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

// Sweep does what Reap does, and takes back grants that have not been accepted for more
// than periodsMax periods: their receiver is stopped where the host cannot see it, or too
// busy. A waiter calls Sweep when a period has passed without an event, and then
// [Handle.Check] of each limit for which it waits.
//
// Reap queries the system for every participant, so in each period only one of the
// waiters does that. Sweep reports whether m did. now is in nanoseconds of a
// clock that all participants share.
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
		m.takeBack(&m.pool.limits[n], m.sightings[n])
	}
}

// sighting counts in how many sweeps in a row a slot had the same grant.
type sighting struct {
	slot  uint64
	times int
}

// periodsMax is the number of periods for which a grant may stay unaccepted.
const periodsMax = 2

// takeBack frees the slots whose grants are too old. Their receivers keep their tickets,
// but are out of the mask until they run again.
func (m *Member) takeBack(l *limit, sightings []sighting) {
	for s := range l.count {
		seen := l.slot(s).load()
		if seen&granted == 0 || indexOf(seen) == m.index {
			sightings[s] = sighting{}
			continue
		}
		if sightings[s].slot != seen {
			sightings[s] = sighting{slot: seen}
		}
		if sightings[s].times++; sightings[s].times > periodsMax && l.slot(s).cas(seen, freed(seen)) {
			m.pool.place(l, s)
		}
	}
}
