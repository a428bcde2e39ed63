package pool //nolint:testpackage // it grants slots by hand

import (
	"sync"
	"sync/atomic"
	"testing"
)

// asleep is a host in which no process dies.
type asleep struct{}

func (asleep) Lock(int) bool    { return true }
func (asleep) Unlock(int)       {}
func (asleep) Held(int) bool    { return true }
func (asleep) Stopped(int) bool { return false }
func (asleep) Wake(*uint64)     {}

// two returns two participants of a pool with one slot.
func two() (one, other *Member) {
	shape := Shape{Participants: 2, Limits: []int{1}}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	p.state(0).store(stateOf(1))
	p.state(1).store(stateOf(1))
	return p.member(0, 1), p.member(1, 1)
}

// Pass and Yield give the slot to another waiter, also if both have the same ticket, or
// if the other's is a little later.
func TestB8_PassAndYield(t *testing.T) {
	for name, handOn := range map[string]func(s *Handle, slot int){"pass": (*Handle).Pass, "yield": (*Handle).Yield} {
		for _, later := range []uint64{0, 1} {
			one, other := two()
			held, ok := one.Handle(0).Take(3)
			if !ok {
				t.Fatal("a free slot was refused")
			}
			one.Handle(0).Want(Want{Tier: 3, Ticket: 7, Count: 1})
			other.Handle(0).Want(Want{Tier: 3, Ticket: 7 + later, Count: 1})
			handOn(one.Handle(0), held.Index)
			if _, ok := other.Handle(0).Take(3); !ok {
				t.Errorf("%s: the other waiter, %d later, has got no slot", name, later)
			}
			other.Handle(0).Want(Want{})
			other.Handle(0).Release(held.Index)
			handOn(one.Handle(0), held.Index) // has no effect: it does not hold the slot
			got, ok := one.Handle(0).Take(3)
			if !ok {
				t.Fatalf("%s: the only waiter has got no slot", name)
			}
			one.Handle(0).Want(Want{Tier: 3, Ticket: 9, Count: 1})
			if handOn(one.Handle(0), got.Index); !one.Handle(0).Check() {
				t.Errorf("%s: the only waiter has not got its slot back", name)
			}
		}
	}
}

// Try fails while the mask is not empty, and Drop then leaves the grant to Place.
func TestB8_TryAndDrop(t *testing.T) {
	one, other := two()
	handle, word := one.Handle(0), one.Handle(0).slots[0]
	for range 2 {
		if _, ok := handle.Try(); !ok {
			t.Fatal("a free slot was refused")
		}
		if _, ok := other.Handle(0).Try(); ok || other.Handle(0).Drop(0) || word.load() != handle.held {
			t.Error("a slot of another participant was taken or released")
		}
		if handle.Drop(0) || word.load() != 0 {
			t.Error("the slot was not released, or Drop reports a waiter")
		}
	}
	if _, ok := handle.Try(); !ok {
		t.Fatal("a free slot was refused")
	}
	other.Handle(0).Want(Want{Tier: 3, Ticket: 7, Count: 1})
	if !handle.Drop(0) {
		t.Error("Drop reports no waiter")
	}
	if _, ok := handle.Try(); ok || word.load() != 0 {
		t.Error("Try took a slot before a waiter")
	}
	handle.Place(0)
	if _, ok := other.Handle(0).Take(3); !ok {
		t.Error("the waiter has got no slot")
	}
}

// Undo gives the slot to a participant that waits, and the next one that takes it is informed that its
// holder died, also if it was granted before.
func TestB8_UndoGrantsTheSlot(t *testing.T) {
	for _, gone := range []bool{false, true} {
		one, other := two()
		got, ok := one.Handle(0).Take(3)
		if !ok {
			t.Fatal("a free slot was refused")
		}
		got.Abandoned = gone
		other.Handle(0).Want(Want{Tier: 3, Ticket: 7, Count: 1})
		one.Handle(0).Undo(got)
		if !other.Handle(0).Check() {
			t.Error("the waiter was granted no slot")
		}
		if got, ok := other.Handle(0).Take(3); !ok || got.Abandoned != gone {
			t.Errorf("the waiter has the slot: %t, abandoned: %t; want %t", ok, got.Abandoned, gone)
		}
	}
}

// Until Place grants a dropped slot, Take takes it only for a higher tier than that of the waiter.
func TestB8_TakeOfADroppedSlot(t *testing.T) {
	for tier := range Tiers {
		one, other := two()
		if _, ok := one.Handle(0).Take(3); !ok {
			t.Fatal("a free slot was refused")
		}
		other.Handle(0).Want(Want{Tier: 3, Ticket: 7, Count: 1})
		one.Handle(0).Drop(0)
		if _, ok := one.Handle(0).Take(tier); ok != (tier > 3) {
			t.Errorf("Take of tier %d, while tier 3 waits: %t", tier, ok)
		}
	}
}

// A participant that begins to wait while a slot is dropped is granted it, or finds it
// free.
func TestB8_DropWhileAnotherEnters(t *testing.T) {
	one, other := two()
	handle := one.Handle(0)
	for round := range uint64(10_000) {
		if _, ok := handle.Take(3); !ok {
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
			if handle.Drop(0) {
				handle.Place(0)
			}
		})
		meet()
		other.Handle(0).Want(Want{Tier: 3, Ticket: 1 + round, Count: 1})
		done.Wait()
		if !other.Handle(0).Check() {
			t.Fatalf("round %d: the slot is free and the waiter has no grant", round)
		}
		if _, ok := other.Handle(0).Take(3); !ok {
			t.Fatalf("round %d: a granted slot was refused", round)
		}
		other.Handle(0).Want(Want{})
		other.Handle(0).Release(0)
	}
}

// Ahead does not count dead participants, and RingNext skips them.
func TestB8_AheadAndRingNextSkipTheDead(t *testing.T) {
	shape := Shape{Participants: 5, Limits: []int{1}, Buckets: 1}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*Member
	for i := range shape.Participants {
		p.state(i).store(stateOf(1))
		all = append(all, p.member(i, 1))
	}
	if _, ok := all[4].Handle(0).Take(3); !ok {
		t.Fatal("a free slot was refused")
	}
	for i, m := range all[:3] {
		m.Handle(0).Want(Want{Tier: 3, Ticket: uint64(i), Count: 1})
	}
	all[3].BucketHandle(0).Enqueue(Want{Tier: 3, Count: 1}, 1)
	for _, row := range []struct{ dead, count, last int }{{-1, 3, 2}, {0, 2, 2}, {2, 1, 1}, {1, 0, -1}} {
		if row.dead >= 0 {
			p.state(row.dead).store(gone(stateOf(1)))
		}
		if count, last := all[3].Ahead(); count != row.count || last != row.last {
			t.Errorf("when %d has died: %d ahead, the last is %d; want %+v", row.dead, count, last, row)
		}
	}
	before := all[3].Bell()
	for _, m := range []*Member{all[0], all[3]} { // nothing waits behind the second
		m.RingNext()
		if rung := all[3].Bell() - before; rung != 1 || all[1].Bell()+all[2].Bell()+all[4].Bell() != 0 {
			t.Errorf("participant %d calls: the next living participant was rung %d times, or others were", m.index, rung)
		}
	}
}

// In each period one of the waiters looks for the dead, and learns that it was the one.
func TestB8_OneLooksForTheDeadInEachPeriod(t *testing.T) {
	shape := Shape{Participants: 2, Limits: []int{1}}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*Member
	for i := range shape.Participants {
		p.state(i).store(stateOf(1))
		all = append(all, p.member(i, 1))
	}
	const period = 10
	for _, row := range []struct {
		now   int64
		by    int
		wants bool
	}{
		{period, 0, true}, {period + 1, 1, false}, {2*period - 1, 0, false}, {2 * period, 1, true}, {2*period + 1, 0, false},
	} {
		if looked := all[row.by].Sweep(row.now, period); looked != row.wants {
			t.Errorf("at %d, member %d looks: %t, want %t", row.now, row.by, looked, row.wants)
		}
	}
}

// A grant that its receiver has not accepted for too long goes to the next waiter at once: this waiter is
// in the mask already, so nothing else would grant it the slot.
func TestB8_GrantThatIsTakenBackGoesToTheNextWaiter(t *testing.T) {
	shape := Shape{Participants: 3, Limits: []int{1}}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*Member
	for i := range shape.Participants {
		p.state(i).store(stateOf(1))
		all = append(all, p.member(i, 1))
	}
	holder, stopped, waiter := all[0].Handle(0), all[1].Handle(0), all[2].Handle(0)
	if _, ok := holder.Take(3); !ok {
		t.Fatal("a free slot was refused")
	}
	stopped.Want(Want{Tier: 3, Ticket: 1, Count: 1})
	waiter.Want(Want{Tier: 3, Ticket: 2, Count: 1})
	holder.Release(0)
	for n := range periodsMax + 1 {
		if waiter.Check() {
			t.Fatalf("after %d sweeps the slot has been taken back from the waiter that came first", n)
		}
		if all[2].Sweep(0, 1) {
			t.Fatal("the sweep looked for the dead, and with that for free slots, in the period of another")
		}
	}
	if !waiter.Check() {
		t.Error("the slot has been taken back, and the next waiter has no grant")
	}
}

// apart is a host whose other processes have ended: nothing but the caller holds a lock.
type apart struct{ asleep }

func (apart) Held(int) bool { return false }

// A participant that looks for the dead does not count itself as one, though no other process holds
// its life lock.
func TestB8_SeekerOfTheDeadLives(t *testing.T) {
	shape := Shape{Participants: 2, Limits: []int{2}}
	p := New(make([]uint64, shape.Words()), shape, apart{})
	m, err := p.Join(1, "alive")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Handle(0).Take(3); !ok {
		t.Fatal("a free slot was refused")
	}
	m.Handle(0).ReapOwners()
	m.Reap()
	if got := p.usage(&p.limits[0], func(int) bool { return true }); got.Slots != 1 {
		t.Errorf("the usage is %+v, want the slot of the participant", got)
	}
}
