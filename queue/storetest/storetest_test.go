package storetest_test

import (
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/retry"
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

// A task without MaxAttempts has as many attempts as a call of retry.Do: the suite holds all stores
// to the number of the reference model.
func TestReference_AttemptsAreThoseOfRetry(t *testing.T) {
	if reference.Attempts != retry.DefaultAttempts {
		t.Errorf("the default is %d attempts of a task, and %d of package retry", reference.Attempts, retry.DefaultAttempts)
	}
}

func TestReference(t *testing.T) { storetest.Run(t, openReference) }

func TestReference_Durable(t *testing.T) { storetest.Run(t, openRecoverable) }

func TestReference_Model(t *testing.T) { storetest.Model(t, openReference, 4_000) }
