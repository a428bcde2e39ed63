package sched //nolint:testpackage // which entries are kept cannot be seen from outside

import (
	"errors"
	"testing"
	"testing/synctest"
)

// pooledSlots are shared slots of which some number is free.
type pooledSlots struct {
	freeSlots
	free    int
	tries   int
	waiting int // of the last Want
	lost    func(grant uint64, cause error)
}

func (s *pooledSlots) Bind(_ func(), lost func(uint64, error)) { s.lost = lost }
func (s *pooledSlots) Release(uint64)                          { s.free++ }
func (s *pooledSlots) Want(_, waiting int)                     { s.waiting = waiting }

func (s *pooledSlots) TryAcquire(tier int) (grant uint64, err error) {
	s.tries++
	if s.free == 0 {
		return 0, ErrNoSlot
	}
	s.free--
	return s.freeSlots.TryAcquire(tier)
}

// Of the permits for shared slots that are released, one leaves its entry among the holders for
// the next permit, even if slots were lost. With Config.Holders none does.
func TestB6_EntriesOfReleasedPermits(t *testing.T) {
	for _, reported := range []bool{false, true} {
		const slots = 3
		s := &pooledSlots{free: slots}
		e := New(Config{Limit: slots, Slots: s, Holders: reported})
		left := 1
		if reported {
			left = 0
		}
		for round := range 3 {
			var all []Permit
			for range slots {
				p, err := e.Take(t.Context(), Ask{Weight: 1, Tier: 3})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, p)
			}
			if n := len(e.holders.all); n != slots {
				t.Errorf("Holders %v: %d entries have slots, want %d", reported, n, slots)
			}
			if round == 1 {
				for i := range all {
					s.lost(all[i].x.grant, errors.New("the lease ran out"))
					s.free++
				}
			}
			for i := range all {
				all[i].Release()
			}
			if n := len(e.holders.all); n != left || s.free != slots {
				t.Errorf("Holders %v, after Release: %d entries among the holders, want %d; %d slots are free, want %d",
					reported, n, left, s.free, slots)
			}
		}
	}
}

// arrive takes slots in a goroutine, which sends its permit, and returns when the call waits.
func arrive(t *testing.T, e *Engine, ask Ask, permits chan<- Permit) {
	t.Helper()
	go func() {
		if p, err := e.Take(t.Context(), ask); err == nil {
			permits <- p
		}
	}()
	synctest.Wait()
}

// A release tries for one slot if the last try found none: any other slot is notified.
func TestB6_ReleaseOfASharedSlotTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pooledSlots{free: 1}
		e := New(Config{Limit: 5, Slots: s})
		ask := Ask{Weight: 1, Tier: 3}
		holder, err := e.Take(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		const waiters = 3
		permits := make(chan Permit, waiters)
		for range waiters {
			arrive(t, e, ask, permits)
		}
		for left := waiters; left > 0; left-- {
			before := s.tries
			holder.Release()
			if n := s.tries - before; n != 1 {
				t.Errorf("a release with %d waiters tried for a slot %d times, want 1", left, n)
			}
			holder = <-permits
		}
		holder.Release()
		if s.free != 1 {
			t.Errorf("%d slots are free at the end, want 1", s.free)
		}
	})
}

// An arrival behind others tries for no slot, and counts as waiting.
func TestB6_ArrivalBehindOthersTriesForNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pooledSlots{free: 1}
		e := New(Config{Limit: 5, Slots: s})
		ask := Ask{Weight: 1, Tier: 3}
		holder, err := e.Take(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		const waiters = 4
		permits := make(chan Permit, waiters)
		arrive(t, e, ask, permits)
		for n := 2; n <= waiters; n++ {
			before := s.tries
			arrive(t, e, ask, permits)
			if s.tries != before || s.waiting != n {
				t.Errorf("waiter %d tried %d times, and %d waiters are reported", n, s.tries-before, s.waiting)
			}
		}
		for range waiters {
			holder.Release()
			holder = <-permits
		}
		holder.Release()
		if s.free != 1 || s.waiting != 0 {
			t.Errorf("%d slots are free at the end, want 1, and %d waiters are reported", s.free, s.waiting)
		}
	})
}
