package queuetest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// New returns a queue on an empty store in memory, which is closed when the test ends.
// The default of cfg.Worker is "test"; the default of cfg.Random has a fixed seed. Calls
// of the store go through the functions of around, the first one outermost; see [Faulty].
func New(tb testing.TB, cfg queue.Config, around ...Around) *queue.Queue {
	tb.Helper()
	store := memstore.New(memstore.Config{})
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Errorf("close the store: %v", err)
		}
	})
	return On(tb, store, cfg, around...)
}

// On is [New] on the caller's store, which it does not close.
func On(tb testing.TB, store queue.Store, cfg queue.Config, around ...Around) *queue.Queue {
	tb.Helper()
	if cfg.Worker == "" {
		cfg.Worker = "test"
	}
	if cfg.Random == nil {
		cfg.Random = random(1)
	}
	for _, a := range slices.Backward(around) {
		store = Faulty(store, a)
	}
	return queue.New(store, cfg)
}

// random returns a source of random numbers with a seed. The source is safe for
// concurrent use.
func random(seed uint64) func() uint64 {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return rng.Uint64()
	}
}
