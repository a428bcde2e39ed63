package storetest_test

import (
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/storetest"
)

// openReference opens the store that the suite is proven on.
func openReference(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := storetest.NewReference(cfg)
	t.Cleanup(func() { store.Close() })
	return storetest.Harness{Store: store}
}

// openRecoverable opens one that loses its process, and not its tasks.
func openRecoverable(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := &breakable{Store: openReference(t, cfg).Store}
	return storetest.Harness{
		Store: store, Durable: true,
		Reopen: func(*testing.T) queue.Store {
			store = &breakable{Store: storetest.Reopened(store.Store)}
			return store
		},
		Break: func(n int) { store.breaks(n) },
	}
}

func TestReference(t *testing.T) { storetest.Run(t, openReference) }

func TestReference_Durable(t *testing.T) { storetest.Run(t, openRecoverable) }

func TestReference_Model(t *testing.T) { storetest.Model(t, openReference, 4_000) }
