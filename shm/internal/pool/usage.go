package pool

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// Usage is how many hold slots of a limit, and how many wait.
type Usage struct {
	Slots, Waiting int      // of the living
	Holders        []Holder // in the order of the table, those that have something
}

// Holder is a participant that holds slots, or waits.
type Holder struct {
	Party
	Slots, Waiting int
	Dead           bool // nobody has given its slots back yet
}

// Party is who a participant is.
type Party struct {
	PID  int
	Name string
	Life int // the lock that it holds while it lives
}

// Usage tells who holds slots and who waits. What the dead had is given back
// before, and a slot that was granted counts when it is accepted. While others
// take and release, the numbers are of times that are close together.
func (m *Member) Usage(limit int) Usage {
	m.Reap()
	return m.pool.usage(limit, func(i int) bool { return isLive(m.pool.state(i).load()) })
}

// Usage is that of [Member.Usage] for one who does not take part, and changes
// nothing: the slots of the dead are shown as such.
func (p *Pool) Usage(limit int) Usage { return p.usage(limit, p.present) }

// Parties lists the participants that live.
func (p *Pool) Parties() (all []Party) {
	for i := range p.shape.Participants {
		if p.present(i) {
			all = append(all, p.signed(i))
		}
	}
	return all
}

// present reports whether a participant lives, for one who does not take part.
func (p *Pool) present(i int) bool { return isLive(p.state(i).load()) && p.host.Held(life(i)) }

func (p *Pool) usage(limit int, alive func(i int) bool) (u Usage) {
	l := &p.limits[limit]
	held, left := make([]int, p.shape.Participants), make([]int, p.shape.Participants)
	for s := range l.count {
		switch seen := l.slot(s).load(); {
		case isFree(seen) || seen&granted != 0:
		case p.lives(seen):
			held[indexOf(seen)]++
		default:
			left[indexOf(seen)]++
		}
	}
	for i := range held {
		h := Holder{Party: p.signed(i), Slots: held[i]}
		if alive(i) {
			h.Waiting = countOf(l.want(i).load()) // the dead still have theirs
			u.Slots += h.Slots
			u.Waiting += h.Waiting
		} else {
			h.Slots, h.Dead = held[i]+left[i], true
		}
		if h.Slots+h.Waiting > 0 {
			u.Holders = append(u.Holders, h)
		}
		if !h.Dead && left[i] > 0 {
			// The one before in this place, whose name is no longer there.
			u.Holders = append(u.Holders, Holder{Slots: left[i], Dead: true})
		}
	}
	return u
}

// Peer tells who else has the place i in the table: a generation, from 1, and the
// number of a process. The generation is 0 if nobody has.
func (m *Member) Peer(i int) (era uint64, pid int) {
	state := m.pool.state(i).load()
	if i == m.index || !isLive(state) {
		return 0, 0
	}
	return eraOf(state), m.pool.PID(i)
}

// Joins is how many have ever joined. Peer answers nothing new while it is the same.
func (m *Member) Joins() uint64 { return m.pool.entry(0, entryJoins).load() }

// Ahead returns how many living participants that wait, for anything, come before m in
// the table, and the index of the last of them, or -1. What the dead have left in the masks
// does not count: a dead participant has no role.
func (m *Member) Ahead() (count, last int) {
	last = -1
	for ahead := m.pool.waiting() & (m.bit - 1); ahead != 0; ahead &= ahead - 1 {
		i := bits.TrailingZeros64(ahead)
		if isLive(m.pool.state(i).load()) {
			count, last = count+1, i
		}
	}
	return count, last
}

// RingNext rings the first living participant that waits, for anything, and comes behind m
// in the table.
func (m *Member) RingNext() {
	for behind := m.pool.waiting() &^ (2*m.bit - 1); behind != 0; behind &= behind - 1 {
		i := bits.TrailingZeros64(behind)
		if isLive(m.pool.state(i).load()) {
			m.pool.ring(i)
			return
		}
	}
}

// waiting is the mask of the participants that wait for anything.
func (p *Pool) waiting() (mask uint64) {
	for i := range p.limits {
		mask |= p.limits[i].mask.load()
	}
	for i := range p.buckets {
		mask |= p.buckets[i].mask.load()
	}
	return mask
}

// PID returns the number under which the participant i has signed.
func (p *Pool) PID(i int) int { return int(p.entry(i, entryPID).load()) }

// Sign changes as whom the participant is shown.
func (m *Member) Sign(pid int, name string) { m.pool.sign(m.index, pid, name) }

// sign writes down who the participant is: for people, nothing depends on it.
func (p *Pool) sign(i, pid int, name string) {
	p.entry(i, entryPID).store(uint64(pid))
	var text [nameWords * 8]byte
	copy(text[:], name)
	for n := range nameWords {
		p.entry(i, entryName+n).store(binary.NativeEndian.Uint64(text[n*8:]))
	}
}

func (p *Pool) signed(i int) Party {
	var text [nameWords * 8]byte
	for n := range nameWords {
		binary.NativeEndian.PutUint64(text[n*8:], p.entry(i, entryName+n).load())
	}
	name := strings.ToValidUTF8(strings.TrimRight(string(text[:]), "\x00"), "") // it may have been cut
	return Party{p.PID(i), name, life(i)}
}

// Line is the state of a bucket.
type Line struct {
	Spent   int64
	Waiters []Waiter // in the order of the table
}

// Waiter is a participant that waits for tokens.
type Waiter struct {
	Party
	Tier    int // the highest that waits
	Waiting int
	Self    bool // the member that asks

	at int
}

// Line tells who waits. While others come and go, it is of times that are close
// together.
func (m *Member) Line(bucket int) Line {
	m.Reap()
	line := m.pool.line(bucket, func(i int) bool { return isLive(m.pool.state(i).load()) })
	for i := range line.Waiters {
		line.Waiters[i].Self = line.Waiters[i].at == m.index
	}
	return line
}

// Line is that of [Member.Line] for one who does not take part.
func (p *Pool) Line(bucket int) Line { return p.line(bucket, p.present) }

func (p *Pool) line(bucket int, alive func(i int) bool) Line {
	b := &p.buckets[bucket]
	line := Line{Spent: int64(b.spent.load())}
	for i := range p.shape.Participants {
		if want := b.want(i).load(); want != 0 && alive(i) {
			line.Waiters = append(line.Waiters, Waiter{
				Party:   p.signed(i),
				Tier:    tierOf(want),
				Waiting: countOf(want),
				at:      i,
			})
		}
	}
	return line
}
