package machine_test

import (
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/storetest"
)

// The machine on rows that survive: what they hold at the crash is all that
// the next machine gets.
func TestStore(t *testing.T) { storetest.Run(t, openDurable) }

func TestModel_Store(t *testing.T) { storetest.Model(t, openDurable, 3000) }

func openDurable(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	r, epoch := newRows(), uint32(0)
	openNext := func(t *testing.T) queue.Store {
		t.Helper()
		r, epoch = r.crash(), epoch+1
		m, err := machine.Open(r, machine.Config{
			MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
			WatchBuffer: cfg.WatchBuffer, Epoch: epoch,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	return storetest.Harness{Store: openNext(t), Durable: true, Reopen: openNext}
}
