package pool //nolint:testpackage // it grants slots by hand

import (
	"sync"
	"sync/atomic"
	"testing"
)

// asleep is a host in which nobody dies.
type asleep struct{}

func (asleep) Lock(int) bool    { return true }
func (asleep) Unlock(int)       {}
func (asleep) Held(int) bool    { return true }
func (asleep) Stopped(int) bool { return false }
func (asleep) Wake(int)         {}

// two are the participants of one slot.
func two() (one, other *Member) {
	shape := Shape{Participants: 2, Limits: []int{1}}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	p.state(0).store(stateOf(1))
	p.state(1).store(stateOf(1))
	return p.member(0, 1), p.member(1, 1)
}

// Who has had its turn gives its slot to another that waits, also if both wait since
// the same time, or if the clock of the other is a little ahead.
func TestB8_SlotIsPassedToAnother(t *testing.T) {
	for name, handOn := range map[string]func(s *Seat, slot int){"pass": (*Seat).Pass, "yield": (*Seat).Yield} {
		for _, later := range []uint64{0, 1} {
			one, other := two()
			held, ok := one.Seat(0).Take(3)
			if !ok {
				t.Fatal("a free slot was refused")
			}
			one.Want(0, Want{Tier: 3, Ticket: 7, Count: 1})
			other.Want(0, Want{Tier: 3, Ticket: 7 + later, Count: 1})
			handOn(one.Seat(0), held.Index)
			if _, ok := other.Seat(0).Take(3); !ok {
				t.Errorf("%s: the other, %d later, has got no slot", name, later)
			}
			other.Want(0, Want{})
			other.Seat(0).Release(held.Index)
			handOn(one.Seat(0), held.Index) // it does not hold it
			got, ok := one.Seat(0).Take(3)
			if !ok {
				t.Fatalf("%s: the only one that waits has got no slot", name)
			}
			one.Want(0, Want{Tier: 3, Ticket: 9, Count: 1})
			if handOn(one.Seat(0), got.Index); !one.Check(0) {
				t.Errorf("%s: the only one that waits has not got its slot back", name)
			}
		}
	}
}

// The short ways of a slot are for when nobody waits. Where somebody does, a free slot
// is left to Take, and who gets one that came back to Place.
func TestB8_SlotWhileNobodyWaits(t *testing.T) {
	one, other := two()
	seat, word := one.Seat(0), one.Seat(0).slots[0]
	for range 2 {
		if _, ok := seat.Try(); !ok {
			t.Fatal("a free slot was refused")
		}
		if _, ok := other.Seat(0).Try(); ok || other.Seat(0).Drop(0) || word.load() != seat.held {
			t.Error("the slot of another was taken, or given back")
		}
		if seat.Drop(0) || word.load() != 0 {
			t.Error("a slot was not given back, or somebody waits for it")
		}
	}
	if _, ok := seat.Try(); !ok {
		t.Fatal("a free slot was refused")
	}
	other.Want(0, Want{Tier: 3, Ticket: 7, Count: 1})
	if !seat.Drop(0) {
		t.Error("nobody waits for a slot")
	}
	if _, ok := seat.Try(); ok || word.load() != 0 {
		t.Error("a slot was taken before who waits")
	}
	seat.Place(0)
	if _, ok := other.Seat(0).Take(3); !ok {
		t.Error("who waits has got no slot")
	}
}

// Who begins to wait while a slot is dropped is granted it, or finds it free.
func TestB8_SlotIsDroppedAsSomebodyComes(t *testing.T) {
	one, other := two()
	seat := one.Seat(0)
	for round := range uint64(10_000) {
		if _, ok := seat.Take(3); !ok {
			t.Fatal("a free slot was refused")
		}
		var ready atomic.Int32
		var done sync.WaitGroup
		meet := func() {
			for ready.Add(1); ready.Load() < 2; {
			}
		}
		done.Go(func() {
			meet()
			if seat.Drop(0) {
				seat.Place(0)
			}
		})
		meet()
		other.Want(0, Want{Tier: 3, Ticket: 1 + round, Count: 1})
		done.Wait()
		if !other.Check(0) {
			t.Fatalf("round %d: nobody has the slot, and one waits for it", round)
		}
		if _, ok := other.Seat(0).Take(3); !ok {
			t.Fatalf("round %d: a granted slot was refused", round)
		}
		other.Want(0, Want{})
		other.Seat(0).Release(0)
	}
}

// The dead do not count among those who wait before a participant, nor do they get a ring
// that is for the next who waits.
func TestB8_TheDeadHaveNoRole(t *testing.T) {
	shape := Shape{Participants: 5, Limits: []int{1}, Buckets: 1}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*Member
	for i := range shape.Participants {
		p.state(i).store(stateOf(1))
		all = append(all, p.member(i, 1))
	}
	if _, ok := all[4].Seat(0).Take(3); !ok {
		t.Fatal("a free slot was refused")
	}
	for i, m := range all[:3] {
		m.Want(0, Want{Tier: 3, Ticket: uint64(i), Count: 1})
	}
	all[3].Stand(0, Want{Tier: 3, Count: 1}, 1)
	for _, row := range []struct{ dead, count, last int }{{-1, 3, 2}, {0, 2, 2}, {2, 1, 1}, {1, 0, -1}} {
		if row.dead >= 0 {
			p.state(row.dead).store(gone(stateOf(1)))
		}
		if count, last := all[3].Ahead(); count != row.count || last != row.last {
			t.Errorf("when %d has died: %d ahead, the last is %d; want %+v", row.dead, count, last, row)
		}
	}
	before := all[3].Bell()
	all[0].RingNext()
	all[3].RingNext()
	if rung := all[3].Bell() - before; rung != 1 || all[1].Bell()+all[2].Bell()+all[4].Bell() != 0 {
		t.Errorf("the next that lives was rung %d times, or others were", rung)
	}
}
