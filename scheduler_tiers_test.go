package stint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

func TestB2_CapsInherit(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		set   stint.Caps
		want  stint.Caps
	}{
		{"none", 9, stint.Caps{}, stint.Caps{9, 9, 9, 9, 9, 9, 9}},
		{"the example", 100, stint.Caps{Low: 20, Lowest: 5}, stint.Caps{5, 5, 20, 100, 100, 100, 100}},
		{"only normal", 10, stint.Caps{Normal: 4}, stint.Caps{4, 4, 4, 4, 10, 10, 10}},
		{"only highest", 10, stint.Caps{Highest: 4}, stint.Caps{4, 4, 4, 4, 4, 4, 4}},
		{"above the limit", 10, stint.Caps{Lower: 50}, stint.Caps{10, 10, 10, 10, 10, 10, 10}},
		{"equal", 9, stint.Caps{Low: 3, Normal: 3}, stint.Caps{3, 3, 3, 3, 9, 9, 9}},
		{"no capacity", 0, stint.Caps{Low: 5}, stint.Caps{}},
	} {
		if got := stint.New(c.limit, stint.Config{Caps: c.set}).Stats().Caps; got != c.want {
			t.Errorf("%s: caps of %d and %+v are %+v, want %+v", c.name, c.limit, c.set, got, c.want)
		}
	}
}

// A lower tier with the larger cap would start while a higher one may not. The error
// says which two fields that are, and what to write.
func TestB2_CapsThatContradictEachOtherAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		caps stint.Caps
		want []string
	}{
		"neighbours": {
			stint.Caps{Low: 8, Normal: 3},
			[]string{"stint: Caps.Normal is 3, less than Caps.Low, which is 8 and of a lower tier: " +
				"write 8 or more for Normal, 3 or less for Low, or leave Normal out"},
		},
		"with unset ones between": {stint.Caps{Lowest: 2, Highest: 1}, []string{"Caps.Highest is 1, less than Caps.Lowest"}},
		"against the largest below": {
			stint.Caps{Lowest: 5, Lower: 3, Low: 4},
			[]string{"Caps.Lower is 3, less than Caps.Lowest, which is 5", "Caps.Low is 4, less than Caps.Lowest, which is 5"},
		},
		"above the limit": {stint.Caps{Low: 80, High: 70}, []string{"Caps.High is 70, less than Caps.Low, which is 80"}},
	} {
		err := stint.Config{Caps: c.caps}.Validate(10)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one with %q", name, err, want)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n") != len(c.want)-1 {
			t.Errorf("%s: there is more than %d problems in: %v", name, len(c.want), err)
		}
		s := stint.New(10, stint.Config{})
		for call, fn := range map[string]func(){
			"New":     func() { stint.New(10, stint.Config{Caps: c.caps}) },
			"SetCaps": func() { s.SetCaps(c.caps) },
		} {
			if got := panicOf(fn); fmt.Sprint(got) != fmt.Sprint(err) {
				t.Errorf("%s: %s panics with %v, want the error of Validate", name, call, got)
			}
		}
		if caps := s.Stats().Caps; caps != (stint.Caps{10, 10, 10, 10, 10, 10, 10}) {
			t.Errorf("%s: the caps that were refused are in force: %+v", name, caps)
		}
	}
}

// Each tier is admitted at once exactly while the running total is below its
// cap, whatever tiers are running.
func TestB2_TierIsAdmittedBelowItsCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caps := stint.Caps{1, 2, 3, 4, 5, 6, 7}
		s := stint.New(8, stint.Config{Caps: caps})
		limits := []int{1, 2, 3, 4, 5, 6, 7}
		for running := range 9 {
			for i, limit := range limits {
				view := s.At(stint.Lowest + stint.Priority(i))
				p, ok := view.TryAcquire(t.Context())
				if want := running < limit; ok != want {
					t.Errorf("%d run: tier %v is admitted: %t, want %t", running, stint.Lowest+stint.Priority(i), ok, want)
				}
				if ok {
					p.Release()
				}
			}
			// No cap of seven is at the limit, so the last slot is had through a lower one.
			if running < 7 {
				takeSlots(t, s.At(stint.Highest), 1)
			} else if running == 7 {
				s.SetCaps(stint.Caps{Highest: 8})
				takeSlots(t, s, 1)
				s.SetCaps(caps)
			}
		}
		wantCounts(t, s, 8, 0)
	})
}

// An arrival queues behind what waits in its own tier, and passes by what
// waits in others.
func TestB2_QueuedTierHoldsItsArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{Caps: stint.Caps{Low: 2}})
		low := s.At(stint.Low)
		ofLow := takeSlots(t, low, 2)
		waiter := claimSlot(t.Context(), low)
		if _, ok := low.TryAcquire(t.Context()); ok || !waiter.waits() {
			t.Fatal("tier low was admitted at its cap")
		}
		permits := takeSlots(t, s, 2)
		if _, ok := s.TryAcquire(t.Context()); ok {
			t.Fatal("the limit was passed")
		}
		releaseSlot(permits[0])
		releaseSlot(permits[1])
		if !waiter.waits() {
			t.Fatal("tier low was started at its cap")
		}
		releaseSlot(ofLow[0])
		if !waiter.holds() {
			t.Fatal("tier low was not started below its cap")
		}
		ofLow[1].Release()
		waiter.permit.Release()
		wantAllFree(t, s)
	})
}

func TestB2_HigherTierGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var started journal
		for tier := stint.Lowest; tier <= stint.Highest; tier++ {
			stint.Go(t.Context(), s.At(tier), func(context.Context) (int, error) {
				started.add("%v", tier)
				return 0, nil
			})
		}
		releaseSlot(permit)
		started.want(t, "highest", "higher", "high", "normal", "low", "lower", "lowest")
	})
}

func TestB2_TierComesFromTheContextUnlessSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		ctx, leave := context.WithCancel(stint.WithPriority(t.Context(), stint.High))
		claimSlot(ctx, s)
		claimSlot(ctx, s.At(stint.Lowest))
		claimSlot(ctx, s.At(stint.Normal))
		if got, want := s.Stats().QueuedBy, [stint.Tiers]int{1, 0, 0, 1, 1, 0, 0}; got != want {
			t.Errorf("queued by tier: %v, want %v", got, want)
		}
		leave()
		synctest.Wait()
		permit.Release()
		wantAllFree(t, s)
	})
}

// With everything queued before anything starts, the order is a fixed one. Per
// cycle of 56 starts each lower tier has exactly one, and the rest is the
// highest's.
func TestB3_SharesAreExactAndTheOrderIsFixed(t *testing.T) {
	const cycle, cycles = 56, 4
	order := func() (tiers []string) {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{Caps: stint.Caps{Low: 1, Highest: 1}})
			permit := mustTry(t, s)
			var started journal
			for range cycle * cycles {
				for tier := stint.Lowest; tier <= stint.Highest; tier++ {
					stint.Go(t.Context(), s.At(tier), func(context.Context) (int, error) {
						started.add("%v", tier)
						return 0, nil
					})
				}
			}
			releaseSlot(permit)
			wantAllFree(t, s)
			tiers = started.lines
		})
		return tiers
	}
	first := order()
	if second := order(); !slices.Equal(first, second) {
		t.Errorf("two runs started in different orders:\n%v\n%v", first, second)
	}
	for n := range cycles {
		got := map[string]int{}
		for _, tier := range first[n*cycle : (n+1)*cycle] {
			got[tier]++
		}
		for tier := stint.Lowest; tier < stint.Highest; tier++ {
			if got[tier.String()] != 1 {
				t.Errorf("cycle %d started %v", n, got)
				break
			}
		}
	}
}

// The guard starts a tier that its cap shuts out, though never above the limit.
func TestB3_GuardPassesTheCapButNotTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{Caps: stint.Caps{Lowest: 1, Lower: 3}})
		held := takeSlots(t, s, 3)
		var starved *claim
		lowest, leave := context.WithCancel(t.Context())
		defer leave()
		starved = claimSlot(lowest, s.At(stint.Lowest))
		for range 60 { // they get their slots in this order, so the first of held has one
			held = append(held, &claimSlot(t.Context(), s).permit)
		}
		releaseFirst := func() {
			releaseSlot(held[0])
			held = held[1:]
		}
		for turn := 1; starved.waits(); turn++ {
			if turn > 56 {
				t.Fatal("not started within 56 turns")
			}
			releaseFirst()
			if st := s.Stats(); st.Running != 3 {
				t.Fatalf("turn %d: %d run, want 3", turn, st.Running)
			}
		}
		for s.Stats().Queued > 0 {
			releaseFirst()
		}
		starved.permit.Release()
		held.release()
		wantAllFree(t, s)
	})
}

// A finish at which the caps allow nothing is a turn, so that a tier above its
// cap has its own in the end. One during a pause is none: it is not the caps
// that allow nothing then.
func TestB3_FinishThatStartsNothingIsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(20, stint.Config{Caps: stint.Caps{Lowest: 1, Lower: 20}})
		held := takeSlots(t, s, 20)
		starved := claimSlot(t.Context(), s.At(stint.Lowest))
		release := func(n int) {
			for range n {
				releaseSlot(held[0])
				held = held[1:]
			}
		}
		release(4)
		s.Pause("the test")
		release(5)
		s.Resume()
		synctest.Wait()
		release(2)
		if !starved.waits() {
			t.Fatal("started before the guard's turn")
		}
		release(1)
		if !starved.holds() {
			t.Fatal("not started at the guard's turn, after seven others")
		}
		release(8)
		starved.permit.Release()
		wantAllFree(t, s)
	})
}

// A tier with nothing waiting leaves its turns to the highest that waits
// within caps.
func TestB3_TurnOfAnEmptyTierGoesToTheHighest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var started journal
		for range 120 {
			for _, tier := range []stint.Priority{stint.Normal, stint.High} {
				stint.Go(t.Context(), s.At(tier), func(context.Context) (int, error) {
					started.add("%v", tier)
					return 0, nil
				})
			}
		}
		releaseSlot(permit)
		var normal []int
		for i, tier := range started.lines[:112] {
			if tier == "normal" {
				normal = append(normal, i)
			}
		}
		// Every eighth turn is the guard's, and the fourth of its seven is normal's.
		if want := []int{31, 87}; !slices.Equal(normal, want) {
			t.Errorf("tier normal started at %v, want %v", normal, want)
		}
		wantAllFree(t, s)
	})
}

func TestB4_TryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		permits := takeSlots(t, s, 2)
		if _, ok := s.TryAcquire(t.Context()); ok {
			t.Error("took a third slot of two")
		}
		leaving, leave := context.WithCancel(t.Context())
		heavy := claimSlot(leaving, s.Weight(2))
		permits[0].Release()
		if _, ok := s.TryAcquire(t.Context()); ok {
			t.Error("passed one that waits in the same tier")
		}
		leave()
		synctest.Wait()
		p, ok := s.TryAcquire(t.Context())
		if !ok || !errors.Is(heavy.err, context.Canceled) {
			t.Error("a slot without waiters is not free")
		}
		permits[1].Release()
		p.Release()
		wantAllFree(t, s)
	})
}

func TestB4_TryAcquireRespectsEveryLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		s    stint.Scheduler
		want bool
	}{
		{"free", stint.New(1, stint.Config{}), true},
		{"key", stint.New(1, stint.Config{PerKey: 1}).Key("a"), true},
		{"weight", stint.New(3, stint.Config{}).Weight(3), true},
		{"no capacity", stint.New(0, stint.Config{}), false},
		{"too heavy", stint.New(2, stint.Config{}).Weight(3), false},
		{"paused", paused(stint.New(1, stint.Config{})), false},
		{"closed", closed(stint.New(1, stint.Config{})), false},
	} {
		if p, got := c.s.TryAcquire(t.Context()); got != c.want {
			t.Errorf("%s: TryAcquire() = %t, want %t", c.name, got, c.want)
		} else if got {
			p.Release()
			if _, ok := c.s.TryAcquire(t.Context()); !ok {
				t.Errorf("%s: was not free again after Release", c.name)
			}
		}
	}
}

func paused(s stint.Scheduler) stint.Scheduler { s.Pause("the test"); return s }
func closed(s stint.Scheduler) stint.Scheduler { s.Close(); return s }

// Release of a permit that is not held panics and changes nothing: the scheduler
// still works.
func TestB4_ReleaseUnderflowPanics(t *testing.T) {
	plain := func(s stint.Scheduler) stint.Scheduler { return s }
	heavy := func(s stint.Scheduler) stint.Scheduler { return s.Weight(2) }
	ofA := func(s stint.Scheduler) stint.Scheduler { return s.Key("a") }
	ofB := func(s stint.Scheduler) stint.Scheduler { return s.Key("b") }
	for _, c := range []struct {
		name   string
		of     func(s stint.Scheduler) stint.Scheduler // the permit that is released twice; nil for the zero one
		copied bool                                    // the second Release is that of a copy
		other  func(s stint.Scheduler) stint.Scheduler // has slots at the second Release; nil for none
		paused bool
	}{
		{name: "the zero permit"},
		{name: "the zero permit beside another", other: plain},
		{name: "released before", of: plain},
		{name: "released before, with a key", of: ofA},
		{name: "released before, heavy", of: heavy},
		{name: "released before, beside another", of: plain, other: plain},
		{name: "a copy", of: plain, copied: true},
		{name: "a heavy copy beside a lighter one", of: heavy, copied: true, other: plain},
		{name: "a copy with a key beside another key", of: ofA, copied: true, other: ofB},
		{name: "a copy with a key beside the same key", of: ofA, copied: true, other: ofA},
		{name: "a copy with a key beside none", of: ofA, copied: true, other: plain},
		{name: "paused", of: plain, copied: true, paused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(4, stint.Config{})
				permit := new(stint.Permit)
				if c.of != nil {
					permit = mustTry(t, c.of(s))
					again := *permit
					permit.Release()
					if c.copied {
						permit = &again
					}
				}
				var others permits
				if c.other != nil {
					others = takeSlots(t, c.other(s), 1)
				}
				if c.paused {
					s.Pause("the test")
				}
				mustPanic(t, "Release", permit.Release)
				wantCounts(t, s, len(others), 0)
				s.Resume()
				others.release()
				wantAllFree(t, s)
			})
		})
	}
}

// A copy of a permit that was released before releases the slot of a function, which has
// none to release when it ends. That does not break the count: the scheduler still works.
func TestB4_ReleaseOfAFunctionsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		permit := mustTry(t, s)
		again := *permit
		permit.Release()
		f := stint.Go(t.Context(), s, func(context.Context) (int, error) {
			again.Release()
			return 1, nil
		})
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("Wait = %d, %v; want 1", v, err)
		}
		synctest.Wait()
		if st := s.Stats(); st.Running != 0 {
			t.Errorf("%d slots are in use, want 0", st.Running)
		}
		wantAllFree(t, s)
	})
}

func TestB4_RunWithHandsTheArgumentOver(t *testing.T) {
	s := stint.New(1, stint.Config{})
	repeat := func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil }
	if got, err := stint.RunWith(t.Context(), s, repeat, 3); got != "xxx" || err != nil {
		t.Errorf("RunWith = %q, %v", got, err)
	}
}

func TestB4_HotPathAllocatesNothing(t *testing.T) {
	s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, fn := range map[string]func(){
		"Acquire and Release":    func() { p, _ := s.Acquire(ctx); p.Release() },
		"a view":                 func() { p, _ := s.At(stint.High).Acquire(ctx); p.Release() },
		"TryAcquire and Release": func() { p, _ := s.TryAcquire(ctx); p.Release() },
	} {
		if got := testing.AllocsPerRun(100, fn); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func TestB4_BadArgumentsPanic(t *testing.T) {
	s := stint.New(1, stint.Config{})
	for name, fn := range map[string]func(){
		"a negative limit":        func() { stint.New(-1, stint.Config{}) },
		"a negative cap":          func() { stint.New(1, stint.Config{Caps: stint.Caps{High: -1}}) },
		"a negative PerKey":       func() { stint.New(1, stint.Config{PerKey: -1}) },
		"a negative Queue":        func() { stint.New(1, stint.Config{Queue: -1}) },
		"an unknown WhenFull":     func() { stint.New(1, stint.Config{WhenFull: 2}) },
		"At of no tier":           func() { s.At(4) },
		"a weight of 0":           func() { s.Weight(0) },
		"Resize below 0":          func() { s.Resize(-1) },
		"SetCaps below 0":         func() { s.SetCaps(stint.Caps{Lowest: -1}) },
		"SetPerKey below 0":       func() { s.SetPerKey(-1) },
		"WithPriority of no tier": func() { stint.WithPriority(t.Context(), -4) },
	} {
		mustPanic(t, name, fn)
	}
}

func TestB4_ValidateReportsEveryProblem(t *testing.T) {
	err := stint.Config{Caps: stint.Caps{Low: -1, High: -2}, PerKey: -3, Queue: -4, WhenFull: 9}.Validate(-5)
	for _, want := range []string{
		"limit is -5", "Caps.Low is -1", "Caps.High is -2", "PerKey is -3", "Queue is -4", "WhenFull is 9",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if err := (stint.Config{}).Validate(stint.MaxSlots); err != nil {
		t.Errorf("the zero Config with the largest limit: %v", err)
	}
}

// The largest weight and the largest limit are held to exactly, also where an int has 32 bits.
func TestB2_LargestWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(stint.MaxSlots, stint.Config{})
		heavy := s.Weight(stint.MaxSlots)
		one := mustTry(t, s)
		if _, ok := heavy.TryAcquire(t.Context()); ok {
			t.Errorf("TryAcquire of %d slots succeeds while one is in use", stint.MaxSlots)
		}
		waits := claimSlot(t.Context(), heavy)
		f := stint.Go(t.Context(), heavy, value(1))
		synctest.Wait()
		if st := s.Stats(); waits.holds() || settled(f) || st.Running != 1 || st.Queued != 2 {
			t.Errorf("%d slots are in use, %d entries queued; want 1 and 2", st.Running, st.Queued)
		}
		releaseSlot(one)
		if st := s.Stats(); !waits.holds() || st.Running != stint.MaxSlots || st.Queued != 1 {
			t.Errorf("%d slots are in use, %d entries queued; want %d and 1", st.Running, st.Queued, stint.MaxSlots)
		}
		releaseSlot(&waits.permit)
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("Wait = %d, %v; want 1, nil", v, err)
		}
		atRest(t, s)
	})
}

// A function that resumes the largest weight waits until all slots are free.
func TestA4_LargestWeightResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(stint.MaxSlots, stint.Config{})
		p := stint.NewPromise[int]()
		f := stint.Go(t.Context(), s.Weight(stint.MaxSlots), func(ctx context.Context) (int, error) {
			return p.Future().Wait(ctx)
		})
		synctest.Wait()
		one := mustTry(t, s)
		p.Resolve(1)
		synctest.Wait()
		if n := s.Stats().Running; settled(f) || n != 1 {
			t.Errorf("%d slots are in use, want 1: the function resumes when that is free", n)
		}
		releaseSlot(one)
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("Wait = %d, %v; want 1, nil", v, err)
		}
		atRest(t, s)
	})
}

func TestB6_Stats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{PerKey: 2, Queue: 4, Caps: stint.Caps{Low: 2}})
		plain, heavy := mustTry(t, s), mustTry(t, s.Key("a").Weight(2))
		ctx, leave := context.WithCancel(t.Context())
		claimSlot(ctx, s.At(stint.Lowest))
		claimSlot(ctx, s.At(stint.Lowest).Key("a"))
		claimSlot(ctx, s.At(stint.High).Weight(3))
		claimSlot(ctx, s)
		var blocked sync.WaitGroup
		for range 2 {
			blocked.Go(func() { stint.Go(ctx, s, valued(func(context.Context) error { return nil })) })
		}
		s.Pause("the test")
		synctest.Wait()
		want := stint.Stats{
			Limit: 3, Running: 3, Queued: 4, QueuedBy: [stint.Tiers]int{2, 0, 0, 1, 1, 0, 0},
			Caps: stint.Caps{2, 2, 2, 3, 3, 3, 3}, PerKey: 2, Blocked: 2, Paused: true,
		}
		if got := s.Stats(); got != want {
			t.Errorf("got  %+v,\nwant %+v", got, want)
		}
		leave()
		synctest.Wait()
		plain.Release()
		heavy.Release()
		s.Resume()
		blocked.Wait()
		wantAllFree(t, s)
		s.Close()
		if got := s.Stats(); !got.Closed || got.Paused {
			t.Errorf("after Close: %s", fmt.Sprintf("%+v", got))
		}
	})
}
