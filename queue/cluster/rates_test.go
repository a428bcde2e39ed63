package cluster_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
)

func rateOf(t *testing.T, n *cluster.Node, cfg cluster.RateConfig) *cluster.Bucket {
	t.Helper()
	b, err := n.Bucket("rate", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestC11_RateOverHosts: limiters of several nodes share a rate, in all tiers, and with
// entries that give up. No more tokens are taken than the rate gives, and the capacity.
func TestC11_RateOverHosts(t *testing.T) {
	const rate, capacity, workers, rounds = 20_000, 200, 7, 40
	hosts := nodes(t, kinds[1], 3, time.Second)
	var all sync.WaitGroup
	start := time.Now()
	for _, n := range hosts {
		b := rateOf(t, n, cluster.RateConfig{PerSecond: rate, Capacity: capacity})
		l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: b})
		for w := range workers {
			ctx := stint.WithPriority(t.Context(), stint.Lowest+stint.Priority(w))
			all.Go(func() {
				for i := range rounds {
					if err := l.Wait(ctx, int64(1+i%9)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	tokens := 0
	for i := range rounds {
		tokens += 3 * workers * (1 + i%9)
	}
	took, least := time.Since(start), time.Duration(tokens-capacity)*time.Second/rate
	t.Logf("%d tokens took %v; at the rate it is %v", tokens, took, least)
	if took < least {
		t.Errorf("%d tokens were taken within %v, which must take %v", tokens, took, least)
	}
}

// TestC11_RateOutlivesTheLeader: entries wait for the next leader.
func TestC11_RateOutlivesTheLeader(t *testing.T) {
	hosts := nodes(t, kinds[1], 3, time.Second)
	var limiters []stint.Limiter
	for _, n := range hosts {
		b := rateOf(t, n, cluster.RateConfig{PerSecond: 1000, Capacity: 10})
		limiters = append(limiters, stint.NewLimiter(0, stint.LimiterConfig{Bucket: b}))
	}
	for _, l := range limiters {
		if err := l.Wait(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
	}
	closes(t, hosts[0])
	for _, l := range limiters[1:] {
		if err := l.Wait(t.Context(), 25); err != nil {
			t.Fatal(err)
		}
	}
	if err := limiters[0].Wait(t.Context(), 1); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("a limiter of a closed node: %v", err)
	}
}

// TestC11_LimitsRefuseBadConfigs: names and numbers that no limit can have are refused, and
// so are limits of a closed node.
func TestC11_LimitsRefuseBadConfigs(t *testing.T) {
	n := nodes(t, kinds[1], 1, time.Second)[0]
	for _, most := range []int{-1, 0, 1 << 21} {
		if _, err := n.Slots("limit", cluster.SlotsConfig{Max: most}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("Max %d: %v", most, err)
		}
	}
	if _, err := n.Slots("", cluster.SlotsConfig{Max: 1}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("no name: %v", err)
	}
	if _, err := n.Bucket("rate", cluster.RateConfig{PerSecond: -1}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("a negative rate: %v", err)
	}
	closes(t, n)
	if _, err := n.Slots("limit", cluster.SlotsConfig{Max: 1}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("slots of a closed node: %v", err)
	}
	if _, err := n.Bucket("rate", cluster.RateConfig{PerSecond: 1}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("a rate of a closed node: %v", err)
	}
}
