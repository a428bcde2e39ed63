package machine_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/storetest"
)

// Each machine opens the rows and the lease log of the one before as a crash has left them.
func TestStore(t *testing.T) { storetest.Run(t, openDurable) }

// As TestStore, but only the rows survive.
func TestStore_PowerLoss(t *testing.T) { storetest.Run(t, openForgetful) }

func TestModel_Store(t *testing.T) { storetest.Model(t, openDurable, 3000) }

func openDurable(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	return harness(t, cfg, false)
}

func openForgetful(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	return harness(t, cfg, true)
}

func harness(t *testing.T, cfg storetest.Config, powerLoss bool) storetest.Harness {
	t.Helper()
	r, s, epoch := newRows(), newLeaseList(), uint32(0)
	openNext := func(t *testing.T) queue.Store {
		t.Helper()
		r, epoch = r.crash(), epoch+1
		if s = s.crash(); powerLoss {
			s = newLeaseList()
		}
		m, err := machine.Open(r, machine.Config{
			MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
			WatchBuffer: cfg.WatchBuffer, Epoch: epoch, Keep: 2000, Leases: s,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil && !errors.Is(err, errBroken) {
				t.Error(err)
			}
		})
		return m
	}
	return storetest.Harness{
		Store: openNext(t), Durable: true, Reopen: openNext, PowerLoss: powerLoss,
		Break: func(n int) { r.breakAt(n) },
	}
}
