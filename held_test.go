package stint_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// held returns what a reason of a code names, "tier/key since" each.
func held(reasons []stint.Reason, code stint.Code) (names []string) {
	for _, r := range reasons {
		if r.Code != code {
			continue
		}
		for _, h := range r.Held {
			names = append(names, h.Priority.String()+"/"+h.Key+" "+h.Since.Format("05"))
		}
	}
	return names
}

// The reasons max, cap and key name the holders of the slots, however the slots were
// taken, in the order of their start.
func TestB6_WhyNamesHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{Holders: true, PerKey: 2, Caps: stint.Caps{Low: 3}})
		ctx := t.Context()
		end := make(chan struct{})
		wait := func(context.Context) (int, error) { <-end; return 0, nil }
		permit, _ := s.Key("a").Acquire(ctx)
		time.Sleep(time.Second)
		go func() { _, _ = stint.Run(ctx, s.At(stint.High), wait) }()
		time.Sleep(time.Second)
		f := stint.Go(ctx, s.Key("a").At(stint.Highest), wait)
		time.Sleep(time.Second)

		ofA := []string{"normal/a 00", "highest/a 02"}
		if got := held(s.Key("a").Why(), stint.CodeKey); !slices.Equal(got, ofA) {
			t.Errorf("key a is held by %q, want %q", got, ofA)
		}
		all := []string{"normal/a 00", "high/ 01", "highest/a 02"}
		if got := held(s.At(stint.Low).Why(), stint.CodeCap); !slices.Equal(got, all) {
			t.Errorf("the cap is reached by %q, want %q", got, all)
		}
		g := stint.NewGroup(ctx, s.At(stint.Lower))
		s.SetCaps(stint.Caps{})
		g.Go(func(ctx context.Context) error { _, err := wait(ctx); return err })
		synctest.Wait()
		all = append(all, "lower/ 03")
		if got := held(s.Why(), stint.CodeMax); !slices.Equal(got, all) {
			t.Errorf("the limit is reached by %q, want %q", got, all)
		}
		queued := stint.Go(ctx, s.Key("a"), wait)
		synctest.Wait()
		w, _ := queued.Why()
		if got := held(w.Reasons, stint.CodeKey); !slices.Equal(got, ofA) {
			t.Errorf("a queued function of key a is held up by %q, want %q", got, ofA)
		}
		for _, w := range s.Waiting() {
			if got := held(w.Reasons, stint.CodeMax); !slices.Equal(got, all) {
				t.Errorf("in Waiting the limit is reached by %q, want %q", got, all)
			}
		}
		permit.Release()
		close(end)
		_, _ = f.Wait(ctx)
		_, _ = queued.Wait(ctx)
		_ = g.Wait()
		synctest.Wait()
		p, _ := s.Weight(4).Acquire(ctx)
		if got, want := held(s.Why(), stint.CodeMax), []string{"normal/ 03"}; !slices.Equal(got, want) {
			t.Errorf("at last the limit is reached by %q, want %q", got, want)
		}
		p.Release()
	})
}

// A function that suspends its slot holds none meanwhile, and has it since when it got it first.
func TestB6_HoldersOfSuspendedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Holders: true})
		high := s.At(stint.High)
		_, err := stint.Run(t.Context(), high, func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			inner := stint.Go(ctx, s, func(context.Context) (int, error) {
				time.Sleep(time.Second)
				if got, want := held(s.Why(), stint.CodeMax), []string{"normal/ 01"}; !slices.Equal(got, want) {
					t.Errorf("the limit is reached by %q, want %q", got, want)
				}
				return 0, nil
			})
			_, err := inner.Wait(ctx)
			if got, want := held(s.Why(), stint.CodeMax), []string{"high/ 00"}; !slices.Equal(got, want) {
				t.Errorf("the limit is reached by %q, want %q", got, want)
			}
			return stint.Run(ctx, s.Key("k"), func(context.Context) (int, error) {
				if got, want := held(s.Why(), stint.CodeMax), []string{"normal/k 02"}; !slices.Equal(got, want) {
					t.Errorf("the limit is reached by %q, want %q", got, want)
				}
				return 0, err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Running; n != 0 {
			t.Errorf("%d slots are in use", n)
		}
	})
}

// On shared slots the holders are named as well, and only those that have a slot now.
func TestB6_HoldersOfSharedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Holders: true, Slots: slotstest.NewPool(1).Join("a")})
		for at, tier := range []stint.Priority{stint.Low, stint.High, stint.Normal} {
			p, err := s.At(tier).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []string{tier.String() + "/ 0" + strconv.Itoa(at)}
			if got := held(s.Why(), stint.CodeMax); !slices.Equal(got, want) {
				t.Errorf("the limit is reached by %q, want %q", got, want)
			}
			time.Sleep(time.Second)
			p.Release()
		}
	})
}

// Of many the ten are named that have had their slots longest, and without the switch none.
func TestB6_HoldersAreBounded(t *testing.T) {
	for _, on := range []bool{true, false} {
		s := stint.New(50, stint.Config{Holders: on})
		for range 50 {
			if _, err := s.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := 0
		if on {
			want = 10
		}
		if got := held(s.Why(), stint.CodeMax); len(got) != want {
			t.Errorf("Holders %v: %d are named, want %d", on, len(got), want)
		}
	}
}
