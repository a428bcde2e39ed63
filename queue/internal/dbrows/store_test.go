package dbrows_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/storetest"
)

// Each store of a case is another process on the same server, which takes the lead from the
// one before.
func TestStore(t *testing.T) { storetest.Run(t, opener(nil)) }

// As TestStore, with random calls while every tenth call or answer is lost.
func TestModel_Store(t *testing.T) {
	random := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) { storetest.Model(t, opener(random), 1000) }) // pauses take no time
}

func opener(random *rand.Rand) storetest.Open {
	return func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		return harness(t, cfg, random)
	}
}

func harness(t *testing.T, cfg storetest.Config, random *rand.Rand) storetest.Harness {
	t.Helper()
	s, b := newServer(), &breaker{random: random}
	openNext := func(t *testing.T) queue.Store {
		t.Helper()
		b.breakAt(0)
		s.endLease()
		r, err := dbrows.Open(t.Context(), s.connect(t, b.fault), dbrows.Config{Server: "the server", Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.Open(r, machine.Config{
			MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
			WatchBuffer: cfg.WatchBuffer, Epoch: r.Epoch(), Keep: 2000, Room: r.Room, Stalled: r.Stalled, Leases: r.LeaseLog(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
				t.Error(err)
			}
		})
		return m
	}
	return storetest.Harness{Store: openNext(t), Durable: true, Reopen: openNext, Break: b.breakAt}
}

// breaker refuses writes from the n-th on, and loses calls and answers at random.
type breaker struct {
	mu     sync.Mutex
	left   int        // writes until one is refused; 0: none is
	random *rand.Rand // nil: nothing is lost
}

func (b *breaker) breakAt(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = n
}

func (b *breaker) fault(o op) (f fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o == opApply || o == opPut {
		if b.left == 1 {
			return fault{before: dbrows.ErrFenced}
		}
		b.left = max(0, b.left-1)
	}
	if b.random != nil {
		switch b.random.IntN(20) {
		case 0:
			f.before = errBroken
		case 1:
			f.after = errBroken
		}
	}
	return f
}
