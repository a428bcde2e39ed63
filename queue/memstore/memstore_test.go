package memstore_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
)

func open(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	s := memstore.New(memstore.Config(cfg))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return storetest.Harness{Store: s}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestModel_Store(t *testing.T) { storetest.Model(t, open, 3000) }

// TestNew_Negative: what makes no sense is said at once, and not where it is used.
func TestNew_Negative(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "WatchBuffer:-1") {
			t.Errorf("New says %q", said)
		}
	}()
	memstore.New(memstore.Config{WatchBuffer: -1})
}
