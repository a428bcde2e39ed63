package stint_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// A call on the outer scheduler within one on the inner needs more slots than the function holds.
// While it waits, it also suspends the slot of the inner scheduler: the other function needs that
// to end, and to release its slot of the outer one.
func TestA4_HeavyCallBackToTheOuterScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := stint.New(2, stint.Config{}), stint.New(1, stint.Config{})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				err := within(t.Context(), []stint.Scheduler{a, b}, func(ctx context.Context) error {
					time.Sleep(time.Second)
					_, err := stint.Run(ctx, a.Weight(2), one)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		wantNothingLeft(t, []stint.Scheduler{a, b})
	})
}

// wantsItsKey returns a scheduler with 2 slots on one of which a function of a key runs, until end
// is closed. Another function of the key wants its slot back, and waits for the key.
func wantsItsKey(t *testing.T, caps stint.Caps) (s stint.Scheduler, end chan struct{}) {
	t.Helper()
	s, end = stint.New(2, stint.Config{PerKey: 1, Caps: caps}), make(chan struct{})
	awaited := stint.NewPromise[int]()
	stint.Go(t.Context(), s.Key("k"), awaited.Future().Wait)
	synctest.Wait()
	stint.Go(t.Context(), s.Key("k"), func(context.Context) (int, error) { <-end; return 0, nil })
	synctest.Wait()
	awaited.Resolve(1)
	synctest.Wait()
	wantCounts(t, s, 1, 0)
	return s, end
}

// What wants its slot back and waits for its key keeps no slot from others.
func TestA4_SuspendedSlotThatWaitsForItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := wantsItsKey(t, stint.Caps{})
		wantReasons(t, s)
		mustTry(t, s).Release()
		f, ok := stint.TryGo(t.Context(), s, value(1))
		if !ok {
			t.Fatal("TryGo found no free slot")
		}
		_, _ = f.Wait(t.Context())
		if p, ok := s.Key("k").TryAcquire(t.Context()); ok {
			p.Release()
			t.Error("TryAcquire took a second slot for the key")
		}
		close(end)
		wantAllFree(t, s)
	})
}

// Nor does it stop the turns of the starvation guard.
func TestB3_GuardWhileASuspendedSlotWaitsForItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := wantsItsKey(t, stint.Caps{Low: 1})
		low := stint.Go(t.Context(), s.At(stint.Low), value(1))
		const cycle = 8 * stint.Tiers
		for range cycle {
			mustTry(t, s).Release()
			synctest.Wait()
		}
		if !settled(low) {
			t.Errorf("after %d turns that its cap let pass, the entry still waits", cycle)
		}
		close(end)
		wantAllFree(t, s)
	})
}

// A function that ends while a goroutine of it still waits to have its slot back gives its key
// up with it.
func TestA5_KeyOfAFunctionThatEndsBeforeItsSlotIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := stint.New(1, stint.Config{PerKey: 1}), make(chan struct{})
		awaited, leave := stint.NewPromise[int](), make(chan struct{})
		stint.Go(t.Context(), s.Key("k"), func(ctx context.Context) (int, error) {
			go func() { _, _ = awaited.Future().Wait(ctx) }()
			<-leave
			return 0, nil
		})
		synctest.Wait()
		stint.Go(t.Context(), s, func(context.Context) (int, error) { <-end; return 0, nil })
		synctest.Wait()
		awaited.Resolve(1) // the goroutine wants the slot back, which the other function has
		synctest.Wait()
		close(leave)
		synctest.Wait()
		close(end)
		synctest.Wait()
		p, ok := s.Key("k").TryAcquire(t.Context())
		if !ok {
			t.Fatal("the key is still at its limit, and nothing of it runs")
		}
		p.Release()
		wantAllFree(t, s)
	})
}
