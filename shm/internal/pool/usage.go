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
	return eraOf(state), int(m.pool.entry(i, entryPID).load())
}

// Joins is how many have ever joined. Peer answers nothing new while it is the same.
func (m *Member) Joins() uint64 { return m.pool.entry(0, entryJoins).load() }

// Ahead is how many of those that wait, for anything, come before m in the table.
func (m *Member) Ahead() int {
	var waiting uint64
	for i := range m.pool.limits {
		waiting |= m.pool.limits[i].mask.load()
	}
	for i := range m.pool.buckets {
		waiting |= m.pool.buckets[i].mask.load()
	}
	return bits.OnesCount64(waiting & (m.bit - 1))
}

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
	return Party{int(p.entry(i, entryPID).load()), name}
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
