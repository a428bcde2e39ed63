package storetest_test

import (
	"testing"

	"github.com/stintgo/stint/queue/storetest"
)

// openNaive opens the store that the suite is proven on.
func openNaive(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := storetest.NewNaive(cfg)
	t.Cleanup(func() { store.Close() })
	return storetest.Harness{Store: store}
}

func TestNaive(t *testing.T) { storetest.Run(t, openNaive) }
