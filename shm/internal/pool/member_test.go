package pool //nolint:testpackage // it makes participants without processes

import (
	"errors"
	"testing"
)

// mortal is a host in which the participants of a mask have died.
type mortal struct {
	asleep
	dead uint64
}

func (m *mortal) Held(lock int) bool { return m.dead>>lock&1 == 0 }

// A process joins in the entry of a participant that has died, though no waiter has looked for the
// dead; what that participant held is free then. While all are alive there is no entry.
func TestB8_JoinTakesTheEntryOfTheDead(t *testing.T) {
	host := &mortal{}
	shape := Shape{Participants: 2, Limits: []int{2}, Buckets: 1}
	p := New(make([]uint64, shape.Words()), shape, host)
	for pid := range shape.Participants {
		m, err := p.Join(pid, "first")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Handle(0).Take(3); !ok {
			t.Fatal("a free slot was refused")
		}
	}
	if n := p.member(0, 1).Joins(); n != 2 {
		t.Errorf("%d have joined, want 2", n)
	}
	if _, err := p.Join(7, "too many"); !errors.Is(err, ErrFull) {
		t.Errorf("a third joined, with error %v; want %v", err, ErrFull)
	}
	host.dead = 1 << 1
	m, err := p.Join(8, "second")
	if err != nil {
		t.Fatal(err)
	}
	if m.Index() != 1 || m.held != owned(1, 2) {
		t.Errorf("it has entry %d and the word %#x, want entry 1 in its second generation", m.Index(), m.held)
	}
	if n := m.Joins(); n != 3 {
		t.Errorf("%d have joined, want 3", n)
	}
	host.dead = 0
	if got, ok := m.Handle(0).Take(3); !ok || !got.Abandoned {
		t.Errorf("the slot of the dead: %+v, %t; want one that was abandoned", got, ok)
	}
	if _, ok := m.Handle(0).Take(3); ok {
		t.Error("the slot of the living was taken")
	}
}
