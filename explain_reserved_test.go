package stint_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// wantReserved checks that nothing but the reservation keeps what waits at s, and an arrival,
// from starting. It takes away what waits.
func wantReserved(t *testing.T, s stint.Scheduler, want stint.Reason) {
	t.Helper()
	f := stint.Go(t.Context(), s, value(0))
	synctest.Wait()
	w, waits := f.Why()
	if !waits || !sameReasons(w.Reasons, []stint.Reason{want}) {
		t.Errorf("Why of what waits: %v, %+v, want %+v", waits, w.Reasons, want)
	}
	found := false
	for _, other := range s.Waiting() {
		if found = found || other.Since.Equal(w.Since); other.Since.Equal(w.Since) &&
			!sameReasons(other.Reasons, w.Reasons) {
			t.Errorf("Waiting has %+v, and Why %+v", other.Reasons, w.Reasons)
		}
	}
	if !found {
		t.Error("it is not in Waiting")
	}
	f.Cancel(nil)
	wantReasons(t, s, want)
}

// A turn of the guard does not end until the heavy entry of a lower tier has its slots. What
// waits in higher tiers is held back by that alone.
func TestWhy_HeavyEntryOfTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		first, second := mustTry(t, s), mustTry(t, s)
		var before []*stint.Future[int]
		for range 7 { // turns, and then comes that of the lowest tier
			before = append(before, stint.Go(t.Context(), s, value(0)))
		}
		heavy := stint.Go(t.Context(), s.At(stint.Lowest).Weight(2), value(0))
		first.Release()
		for _, f := range before {
			_, _ = f.Wait(t.Context())
		}
		wantReserved(t, s, stint.Reason{Code: stint.CodeBehind, Guard: 24})
		second.Release()
		if _, err := heavy.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantAllFree(t, s)
	})
}

// A function that wants several slots back gets those that come free, even if they do not suffice
// yet.
func TestWhy_HeavyFunctionWantsItsSlotsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		end := make(chan struct{})
		heavy := stint.Go(t.Context(), s.Weight(2), func(ctx context.Context) (int, error) {
			long := stint.Go(ctx, s, func(context.Context) (int, error) { <-end; return 0, nil })
			_, _ = stint.Go(ctx, s, value(0)).Wait(ctx)
			return long.Wait(ctx)
		})
		synctest.Wait()
		wantReserved(t, s, stint.Reason{Code: stint.CodeBehind, Resuming: 1, Guard: 29})
		close(end)
		if _, err := heavy.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantReasons(t, s)
		wantAllFree(t, s)
	})
}
