package stint_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// sharedScheduler returns a scheduler over a pool of five slots, one of which has been taken and
// released by Acquire.
func sharedScheduler(t *testing.T, limit int, cfg stint.Config) (s stint.Scheduler, f *slotstest.Fake) {
	t.Helper()
	f = slotstest.NewPool(5).Join("a")
	cfg.Slots = f
	s = stint.New(limit, cfg)
	p, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
	return s, f
}

// Acquire takes no shared slot, although one is free, beyond the limit or the cap of its tier.
func TestSlots_AcquireWithinTheLocalLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := sharedScheduler(t, 3, stint.Config{Caps: stint.Caps{Low: 1}})
		claims := []*claim{claimSlot(t.Context(), s.At(stint.Low))}
		low := claimSlot(t.Context(), s.At(stint.Low))
		if !claims[0].holds() || !low.waits() {
			t.Error("two of the low tier were to get one slot, its cap")
		}
		for range 2 {
			claims = append(claims, claimSlot(t.Context(), s))
		}
		normal := claimSlot(t.Context(), s)
		if n := f.Held(); n != 3 || !normal.waits() {
			t.Errorf("%d shared slots are held, want 3, the limit", n)
		}
		for _, c := range append(claims, normal, low) {
			releaseSlot(&c.permit)
		}
		wantAtRest(t, s, f)
	})
}

// An entry of two shared slots is refused, and Why says so.
func TestB6_WhyOfSeveralSharedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := sharedScheduler(t, 5, stint.Config{})
		why := s.Weight(2).Why()
		const want = "it needs 2 slots at once and is refused, since shared slots are taken one at a time"
		if len(why) != 1 || why[0].Code != stint.CodeShared || why[0].Weight != 2 || why[0].String() != want {
			t.Errorf("Why is %v, want %q", why, want)
		}
		if why = s.Why(); len(why) != 0 {
			t.Errorf("Why for one slot is %v", why)
		}
		wantAtRest(t, s, f)
	})
}

// Acquire takes no shared slot during a pause.
func TestSlots_AcquireDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := sharedScheduler(t, 5, stint.Config{})
		s.Pause("test")
		c := claimSlot(t.Context(), s)
		if n := f.Held(); n != 0 || !c.waits() {
			t.Errorf("%d shared slots are held during a pause", n)
		}
		s.Resume()
		synctest.Wait()
		releaseSlot(&c.permit)
		wantAtRest(t, s, f)
	})
}

// Acquire takes no shared slot of a scheduler that is closed, or drains.
func TestSlots_AcquireAfterClose(t *testing.T) {
	for name, end := range map[string]func(stint.Scheduler, context.Context) error{
		"Close": func(s stint.Scheduler, _ context.Context) error { s.Close(); return nil },
		"Drain": stint.Scheduler.Drain,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f := sharedScheduler(t, 5, stint.Config{})
				if err := end(s, t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := s.Acquire(t.Context()); !errors.Is(err, stint.ErrClosed) {
					t.Errorf("error is %v, want ErrClosed", err)
				}
				wantAtRest(t, s, f)
			})
		})
	}
}

// A shared slot that comes free goes to the caller that waits, not to one that calls Acquire
// before the scheduler is notified.
func TestSlots_AcquireBehindAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		slots := &forTiers{Fake: f, least: stint.High}
		s := stint.New(5, stint.Config{Slots: slots})
		first := claimSlot(t.Context(), s)
		slots.least = stint.Lowest
		second := claimSlot(t.Context(), s)
		slots.notify()
		synctest.Wait()
		if !first.holds() || !second.waits() {
			t.Errorf("the first caller waits: %v, the second: %v; want the second", first.waits(), second.waits())
		}
		for _, c := range []*claim{first, second} {
			releaseSlot(&c.permit)
		}
		wantAtRest(t, s, f)
	})
}

// Acquire takes a shared slot for its own tier, not for that of the permit before it.
func TestSlots_AcquireForItsTier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		slots := &forTiers{Fake: f, least: stint.High}
		s := stint.New(5, stint.Config{Slots: slots})
		for range 2 {
			high := claimSlot(t.Context(), s.At(stint.High))
			if !high.holds() {
				t.Fatal("the slot is free for the high tier")
			}
			releaseSlot(&high.permit)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if normal := claimSlot(ctx, s); !normal.waits() {
			t.Error("the normal tier took a slot that is free for the high tier only")
		}
		cancel()
		wantAtRest(t, s, f)
	})
}

// A second Release of a permit for a shared slot, or of a copy of it, is found: also when another
// caller has the slot by then.
func TestB4_ReleaseOfASharedSlotTwicePanics(t *testing.T) {
	s, f := sharedScheduler(t, 5, stint.Config{})
	for range 2 {
		p, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again := p
		p.Release()
		mustPanic(t, "a second Release of the same permit", func() { p.Release() })
		mustPanic(t, "a second Release of a copy", func() { again.Release() })
		other, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustPanic(t, "a second Release of a copy, whose slot another has", func() { again.Release() })
		if n := f.Held(); n != 1 {
			t.Errorf("%d shared slots are held, want 1", n)
		}
		other.Release()
	}
	if st, m := s.Stats(), f.Misuse(); st.Running != 0 || f.Held() != 0 || len(m) > 0 {
		t.Errorf("at the end %d slots are in use, %d shared ones are held, misuse: %q", st.Running, f.Held(), m)
	}
}
