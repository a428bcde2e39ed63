//go:build !race

// The race detector makes pools forget at random, so the counts hold only
// without it.

package stint_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

func TestB10_NoAllocations(t *testing.T) {
	l := stint.NewLimiter(1e9, stint.LimiterConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	check := func(name string, want float64, fn func()) {
		t.Helper()
		if got := testing.AllocsPerRun(1000, fn); got > want {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	check("Try", 0, func() { l.Try(1) })
	check("Wait", 0, func() { _ = l.Wait(ctx, 1) })
	check("At", 0, func() { _ = l.At(stint.High).Wait(ctx, 1) })
	k := stint.NewLimiter(1e9, stint.LimiterConfig{PerKey: 1e9})
	k.Key("a").Try(1e9)
	check("Try of a key", 0, func() { k.Key("a").Try(1) })
	check("Wait of a key", 0, func() { _ = k.Key("a").Wait(ctx, 1) })
	check("Stats", 0, func() { l.Stats() })
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1000, 1)
		check("waiting", 0, func() { _ = l.Wait(t.Context(), 1) })
		k := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 1000, KeyCapacity: 1}).Key("a")
		check("waiting for a key", 0, func() { _ = k.Wait(t.Context(), 1) })
	})
}
