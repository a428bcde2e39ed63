package machine //nolint:testpackage // no call shows the arithmetic exactly

import (
	"math/big"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Starts as early as the rate allows come at the exact times, rounded up to the
// nanosecond, however many there are.
func TestC12_RateIsExact(t *testing.T) {
	for _, perSecond := range []float64{1, 3, 7.5, 1000, 999_983, 0.001} {
		r := newRate(queue.Rate{PerSecond: perSecond})
		var arrival fixed
		const starts = 100_000
		for range starts {
			now := max(r.from(arrival), 0)
			arrival = r.spend(arrival, now)
		}
		want, _ := new(big.Float).Quo(big.NewFloat(1e9*starts), big.NewFloat(perSecond)).Float64()
		// Each start waits for a whole nanosecond, so it is late by less than one.
		if late := float64(arrival.ns) - want; late < -1 || late > starts {
			t.Errorf("%v a second: %d starts took %d ns, want %.0f", perSecond, starts, arrival.ns, want)
		}
	}
}

func TestC12_RateBurst(t *testing.T) {
	r := newRate(queue.Rate{PerSecond: 10, Burst: 3})
	const now, tenth = int64(1e18), int64(1e8)
	var arrival fixed
	at := now
	for i, want := range []int64{now, now, now, now + tenth, now + 2*tenth} {
		at = max(at, r.from(arrival))
		if at != want {
			t.Errorf("start %d at %d, want %d", i, at-now, want-now)
		}
		arrival = r.spend(arrival, at)
	}
	// A whole burst starts at once also if the interval is no whole number of nanoseconds.
	for _, perSecond := range []float64{3, 7, 0.9, 999_983} {
		r, arrival := newRate(queue.Rate{PerSecond: perSecond, Burst: 1000}), fixed{}
		for i := range 1000 {
			if from := r.from(arrival); from > now {
				t.Errorf("%v a second: start %d of a burst of 1000 is %d ns late", perSecond, i, from-now)
				break
			}
			arrival = r.spend(arrival, now)
		}
		if from := r.from(arrival); from <= now {
			t.Errorf("%v a second: the burst has more than 1000 starts", perSecond)
		}
	}
	if newRate(queue.Rate{}).limited() {
		t.Error("no rate is a limit")
	}
}
