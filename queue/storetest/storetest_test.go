package storetest_test

import (
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/storetest"
)

// openNaive opens the store that the suite is proven on.
func openNaive(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := storetest.NewNaive(cfg)
	t.Cleanup(func() { store.Close() })
	return storetest.Harness{Store: store}
}

// openRecoverable opens one that loses its process, and not its tasks.
func openRecoverable(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := &breakable{Store: openNaive(t, cfg).Store}
	return storetest.Harness{
		Store: store, Durable: true,
		Reopen: func(*testing.T) queue.Store {
			store = &breakable{Store: storetest.Reopened(store.Store)}
			return store
		},
		Break: func(n int) { store.breaks(n) },
	}
}

func TestNaive(t *testing.T) { storetest.Run(t, openNaive) }

func TestNaiveThatIsDurable(t *testing.T) { storetest.Run(t, openRecoverable) }

func TestNaiveModel(t *testing.T) { storetest.Model(t, openNaive, 4_000) }
