package pool

import (
	"encoding/binary"
	"strings"
)

// Usage is how many hold slots of a limit, and how many wait.
type Usage struct {
	Slots, Waiting int
	Holders        []Holder // in the order of the table, those that have something
}

// Holder is a participant that holds slots, or waits.
type Holder struct {
	PID            int
	Name           string
	Slots, Waiting int
}

// Usage tells who holds slots and who waits. What the dead had is given back
// before, and a slot that was granted counts when it is accepted. While others
// take and release, the numbers are of times that are close together.
func (m *Member) Usage(limit int) Usage {
	m.Reap()
	p, l := m.pool, &m.pool.limits[limit]
	held := make([]int, p.shape.Participants)
	for s := range l.count {
		if seen := l.slot(s).load(); !isFree(seen) && seen&granted == 0 {
			held[indexOf(seen)]++
		}
	}
	u := Usage{}
	for i, slots := range held {
		waiting := 0
		if isLive(p.state(i).load()) { // the dead still have their wants
			waiting = countOf(l.want(i).load())
		}
		if slots+waiting == 0 {
			continue
		}
		u.Slots += slots
		u.Waiting += waiting
		pid, name := p.signed(i)
		u.Holders = append(u.Holders, Holder{pid, name, slots, waiting})
	}
	return u
}

// sign writes down who the participant is: for people, nothing depends on it.
func (p *Pool) sign(i, pid int, name string) {
	p.entry(i, entryPID).store(uint64(pid))
	var text [nameWords * 8]byte
	copy(text[:], name)
	for n := range nameWords {
		p.entry(i, entryName+n).store(binary.NativeEndian.Uint64(text[n*8:]))
	}
}

func (p *Pool) signed(i int) (pid int, name string) {
	var text [nameWords * 8]byte
	for n := range nameWords {
		binary.NativeEndian.PutUint64(text[n*8:], p.entry(i, entryName+n).load())
	}
	return int(p.entry(i, entryPID).load()), strings.TrimRight(string(text[:]), "\x00")
}
