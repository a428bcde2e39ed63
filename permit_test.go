package stint_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stintgo/stint"
)

// What a permit releases is what was taken, whatever else the Scheduler is asked for.
func TestB4_PermitGivesBackWhatWasTaken(t *testing.T) {
	for _, holders := range []bool{false, true} {
		s := stint.New(5, stint.Config{PerKey: 1, Holders: holders})
		for _, ask := range []stint.Scheduler{s, s.Key("a"), s.Weight(3), s.Key("a").Weight(5).At(stint.High)} {
			for range 3 {
				p, err := ask.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := s.Weight(5).TryAcquire(t.Context()); ok {
					t.Fatal("all slots are free beside a permit")
				}
				p.Release()
				p, ok := ask.TryAcquire(t.Context())
				if !ok {
					t.Fatal("a slot, or the key, is not free after Release")
				}
				p.Release()
			}
			if n := s.Stats().Running; n != 0 {
				t.Fatalf("%d slots are in use after Release", n)
			}
		}
	}
}

// A second Release is found: of the same permit, of the zero one, and of a copy where an entry
// stands for the slots, also when the slots have been given to others meanwhile.
func TestB4_ReleaseTwicePanics(t *testing.T) {
	var zero stint.Permit
	mustPanic(t, "a Release of the zero permit", func() { zero.Release() })
	for _, holders := range []bool{false, true} {
		s := stint.New(5, stint.Config{Holders: holders})
		for name, ask := range map[string]stint.Scheduler{"plain": s, "key": s.Key("a"), "weight": s.Weight(2)} {
			p, _ := ask.Acquire(t.Context())
			again := p
			p.Release()
			mustPanic(t, name+": a second Release of the same permit", func() { p.Release() })
			mustPanic(t, name+": a second Release of a copy while nothing is in use", func() { again.Release() })

			p, _ = ask.Acquire(t.Context())
			again = p
			p.Release()
			other, _ := ask.Acquire(t.Context())
			if name != "plain" || holders {
				mustPanic(t, name+": a second Release of a copy, whose slots another has", func() { again.Release() })
			}
			other.Release()
			if n := s.Stats().Running; n != 0 {
				t.Errorf("%s: %d slots are in use at the end", name, n)
			}
		}
	}
}

// TryAcquire is of the tier in its context, as Acquire is.
func TestB4_TryAcquireTakesThePriorityOfTheContext(t *testing.T) {
	s := stint.New(4, stint.Config{Caps: stint.Caps{Low: 1}})
	p, _ := s.TryAcquire(t.Context())
	defer p.Release()
	low := stint.WithPriority(t.Context(), stint.Low)
	for _, tried := range []struct {
		s    stint.Scheduler
		want bool
	}{{s, false}, {s.Key("a"), false}, {s.At(stint.Normal), true}, {s.At(stint.High).Key("a"), true}} {
		p, ok := tried.s.TryAcquire(low)
		if ok != tried.want {
			t.Errorf("TryAcquire at low, whose cap is reached, of %+v: %v, want %v", tried.s.Why(), ok, tried.want)
		}
		if ok {
			p.Release()
		}
	}
}

// Permits cost no allocation, with an entry or without.
func TestB4_PermitsDoNotAllocate(t *testing.T) {
	for _, holders := range []bool{false, true} {
		s := stint.New(8, stint.Config{Holders: holders})
		ctx := t.Context()
		for _, ask := range []stint.Scheduler{s, s.Weight(2)} {
			acquire := func() {
				if p, err := ask.Acquire(ctx); err == nil {
					p.Release()
				}
			}
			try := func() {
				if p, ok := ask.TryAcquire(ctx); ok {
					p.Release()
				}
			}
			// Each alone: under the race detector, a sync.Pool loses some of its values.
			for _, take := range []func(){acquire, try} {
				take()
				if n := testing.AllocsPerRun(1000, take); n >= 1 {
					t.Errorf("Holders %v, %+v: %v allocations", holders, ask, n)
				}
			}
		}
	}
}

func ExamplePermit() {
	s := stint.New(10, stint.Config{})
	p, err := s.Key("tenant-7").Weight(3).Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Release()
	fmt.Println(s.Stats().Running)
	// Output: 3
}
