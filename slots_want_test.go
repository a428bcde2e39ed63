package stint_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// Want is called when the number or the highest tier changes, only then, and
// with 0 when no caller waits any more.
func TestSlots_WantIsCalledAtEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		s := stint.New(5, stint.Config{Slots: f})
		permit := mustTry(t, s)
		ctx, leave := context.WithCancel(t.Context())
		low := claimSlot(t.Context(), s.At(stint.Low))
		claimSlot(ctx, s.At(stint.High))
		normal := claimSlot(t.Context(), s)
		s.SetPerKey(3)
		s.At(stint.Low).Why()
		leave()
		synctest.Wait()
		releaseSlot(permit)
		releaseSlot(&normal.permit)
		releaseSlot(&low.permit)
		want := []slotstest.Want{
			{Tier: stint.Low, Waiting: 1},
			{Tier: stint.High, Waiting: 2},
			{Tier: stint.High, Waiting: 3},
			{Tier: stint.Normal, Waiting: 2},
			{Tier: stint.Low, Waiting: 1},
		}
		got := f.Wants()
		if n := len(got) - 1; n != len(want) || !slices.Equal(got[:n], want) || got[n].Waiting != 0 {
			t.Errorf("Want was called with %+v, want %+v and then 0", got, want)
		}
		wantAtRest(t, s, f)
	})
}

// A function that wants its slot back is waiting too, in its tier.
func TestSlots_WantTellsOfFunctionsThatComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(1)
		fake := pool.Join("a")
		s := stint.New(1, stint.Config{Slots: fake})
		f := stint.Go(t.Context(), s.At(stint.High), func(ctx context.Context) (int, error) {
			return stint.Go(ctx, s.At(stint.Low), func(context.Context) (int, error) {
				pool.Resize(0)
				return 0, nil
			}).Wait(ctx)
		})
		synctest.Wait()
		wants := fake.Wants()
		if got, want := wants[len(wants)-1], (slotstest.Want{Tier: stint.High, Waiting: 1}); got != want {
			t.Errorf("the last Want was %+v, want %+v", got, want)
		}
		pool.Resize(1)
		if _, err := f.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantAtRest(t, s, fake)
	})
}

// lastWant checks the last call of Want, once all goroutines are blocked.
func lastWant(t *testing.T, when string, f *slotstest.Fake, want slotstest.Want) {
	t.Helper()
	synctest.Wait()
	var got slotstest.Want
	if wants := f.Wants(); len(wants) > 0 {
		got = wants[len(wants)-1]
	}
	if got.Waiting != want.Waiting || want.Waiting > 0 && got.Tier != want.Tier {
		t.Errorf("%s: the last Want was %+v, want %+v", when, got, want)
	}
}

// What waits for its key, or until the scheduler goes on, does not wait for a slot.
func TestSlots_WantTellsNotOfWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(2).Join("a")
		s := stint.New(5, stint.Config{PerKey: 1, Slots: f})
		ofKey, plain := mustTry(t, s.Key("k")), mustTry(t, s)
		highest := claimSlot(t.Context(), s.Key("k").At(stint.Highest))
		lastWant(t, "behind its key", f, slotstest.Want{})
		low := claimSlot(t.Context(), s.At(stint.Low))
		lastWant(t, "another beside it", f, slotstest.Want{Tier: stint.Low, Waiting: 1})
		s.Pause("test")
		lastWant(t, "paused", f, slotstest.Want{})
		s.SetPerKey(2)
		lastWant(t, "paused, and its key has room", f, slotstest.Want{})
		s.Resume()
		lastWant(t, "its key has room", f, slotstest.Want{Tier: stint.Highest, Waiting: 2})
		s.SetPerKey(1)
		lastWant(t, "behind its key again", f, slotstest.Want{Tier: stint.Low, Waiting: 1})
		ofKey.Release()
		lastWant(t, "its key was released", f, slotstest.Want{Tier: stint.Low, Waiting: 1})
		releaseSlot(plain)
		releaseSlot(&low.permit)
		highest.permit.Release()
		wantAtRest(t, s, f)
	})
}

// Want is called before the slot is released, with the waiters that remain.
func TestSlots_WantIsCalledBeforeRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		order := &wantsAtRelease{Fake: f}
		s := stint.New(5, stint.Config{PerKey: 1, Slots: order})
		permit := mustTry(t, s.Key("k"))
		highest := claimSlot(t.Context(), s.Key("k").At(stint.Highest))
		permit.Release()
		synctest.Wait()
		first := stint.Go(t.Context(), s.Key("j"), nothing)
		second := stint.Go(t.Context(), s.Key("j").At(stint.High), nothing)
		synctest.Wait()
		highest.permit.Release()
		if _, err := first.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := second.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		want := []slotstest.Want{
			{Tier: stint.Highest, Waiting: 1},
			{Tier: stint.High, Waiting: 2},
			{Tier: stint.Normal, Waiting: 1},
		}
		got := order.wants
		if len(got) != 4 || !slices.Equal(got[:3], want) || got[3].Waiting != 0 {
			t.Errorf("at each Release the last Want was %+v, want %+v and then 0", got, want)
		}
		wantAtRest(t, s, f)
	})
}

// A nested Run gets the slot of its caller itself, and the caller is reported to wait
// before the slot of the nested function is released.
func TestSlots_NestedRunHandsItsSlotDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		order := &wantsAtRelease{Fake: f}
		s := stint.New(1, stint.Config{PerKey: 1, Slots: order})
		_, err := stint.Run(t.Context(), s.Key("k").At(stint.High), func(ctx context.Context) (int, error) {
			tries := f.Tries()
			return stint.Run(ctx, s.Key("k").At(stint.Highest), func(context.Context) (int, error) {
				if n := f.Tries() - tries; n != 0 || f.Held() != 1 {
					t.Errorf("the nested Run has asked %d times for a slot, %d are held; want 0 and 1", n, f.Held())
				}
				return 0, nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		if want := []slotstest.Want{{Tier: stint.High, Waiting: 1}, {Tier: stint.High}}; !slices.Equal(order.wants, want) {
			t.Errorf("at each Release the last Want was %+v, want %+v", order.wants, want)
		}
		wantAtRest(t, s, f)
	})
}

// A nested Run is part of its caller: it runs on the slot of its caller through a pause.
func TestSlots_NestedRunThroughAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		s := stint.New(1, stint.Config{Slots: f})
		done := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			s.Pause("test")
			return stint.Run(ctx, s, nothing)
		})
		synctest.Wait()
		select {
		case <-done.Done():
		default:
			t.Error("the nested Run waits for Resume")
		}
		s.Resume()
		if _, err := done.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantAtRest(t, s, f)
	})
}

// A function whose slot was taken away has none to hand down: its nested Run gets another.
func TestSlots_NestedRunOfAFunctionThatHasLostItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		s := stint.New(1, stint.Config{Slots: f})
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			f.Lose(errors.New("the lease ran out"))
			return stint.Run(context.WithoutCancel(ctx), s, func(ctx context.Context) (int, error) {
				return f.Held(), ctx.Err()
			})
		})
		if err != nil {
			t.Error(err)
		}
		wantAtRest(t, s, f)
	})
}

// wantsAtRelease records at each Release what Want was called with last.
type wantsAtRelease struct {
	*slotstest.Fake
	wants []slotstest.Want
}

func (w *wantsAtRelease) Release(grant stint.Grant) {
	w.wants = append(w.wants, slotstest.Want{})
	if all := w.Wants(); len(all) > 0 {
		w.wants[len(w.wants)-1] = all[len(all)-1]
	}
	w.Fake.Release(grant)
}

// Want leaves out tiers that a slot could not start. While the scheduler is at their cap
// it has them, since a slot of its own that is released is for them.
func TestSlots_WantLeavesOutTiersAboveTheirCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(2).Join("a")
		s := stint.New(5, stint.Config{Caps: stint.Caps{Low: 2, Normal: 5}, Slots: f})
		permits := takeSlots(t, s, 2)
		low := claimSlot(t.Context(), s.At(stint.Low))
		lastWant(t, "at its cap", f, slotstest.Want{Tier: stint.Low, Waiting: 1})
		s.SetCaps(stint.Caps{Low: 1})
		lastWant(t, "above its cap", f, slotstest.Want{Tier: stint.Low})
		normal := claimSlot(t.Context(), s)
		lastWant(t, "one below its cap", f, slotstest.Want{Tier: stint.Normal, Waiting: 2})
		s.SetCaps(stint.Caps{Normal: 1})
		lastWant(t, "all are above their caps", f, slotstest.Want{Tier: stint.Normal})
		for _, p := range append(permits, &normal.permit, &low.permit) {
			releaseSlot(p)
		}
		wantAtRest(t, s, f)
	})
}

// One that starts without having waited may bring the tiers that wait above their caps.
func TestSlots_WantAfterAnArrivalThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(5).Join("a")
		slots := &forTiers{Fake: f, least: stint.Lowest}
		s := stint.New(5, stint.Config{Caps: stint.Caps{Normal: 2}, Slots: slots})
		permit := mustTry(t, s)
		slots.least = stint.High
		normal := claimSlot(t.Context(), s)
		low := claimSlot(t.Context(), s.At(stint.Low))
		lastWant(t, "below its cap", f, slotstest.Want{Tier: stint.Normal, Waiting: 2})
		high := takeSlots(t, s.At(stint.High), 2)
		lastWant(t, "above its cap", f, slotstest.Want{Tier: stint.Normal})
		slots.least = stint.Lowest
		for _, p := range append(high, permit, &normal.permit, &low.permit) {
			releaseSlot(p)
		}
		wantAtRest(t, s, f)
	})
}

// forTiers refuses all below a tier, as if one waited elsewhere.
type forTiers struct {
	*slotstest.Fake
	least  stint.Priority
	notify func() // of the scheduler: a change of least is not notified
}

func (f *forTiers) Bind(notify func(), lost func(stint.Grant, error)) {
	f.notify = notify
	f.Fake.Bind(notify, lost)
}

func (f *forTiers) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	if tier < f.least {
		return 0, stint.ErrNoSlot
	}
	return f.Fake.TryAcquire(tier)
}

// A panic of Usage, which a caller may recover, does not leave the scheduler locked.
func TestSlots_PanicOfUsage(t *testing.T) {
	for name, call := range map[string]func(stint.Scheduler){
		"Stats":   func(s stint.Scheduler) { s.Stats() },
		"Why":     func(s stint.Scheduler) { s.Why() },
		"Waiting": func(s stint.Scheduler) { s.Waiting() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{Slots: noUsage{slotstest.NewPool(1).Join("a")}})
				func() {
					defer func() {
						if recover() == nil {
							t.Error("no panic")
						}
					}()
					call(s)
				}()
				s.Pause("test") // hangs if the scheduler is locked
			})
		})
	}
}

// noUsage are slots whose holders are not known.
type noUsage struct{ *slotstest.Fake }

func (noUsage) Usage() stint.Usage { panic("no usage") }
