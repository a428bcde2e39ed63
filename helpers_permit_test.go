package stint_test

import (
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// mustAcquire waits for the slots that s asks for and takes them.
func mustAcquire(tb testing.TB, s stint.Scheduler) *stint.Permit {
	tb.Helper()
	p, err := s.Acquire(tb.Context())
	if err != nil {
		tb.Fatalf("Acquire: %v", err)
	}
	return &p
}

// mustTry takes the slots that s asks for, which must be free.
func mustTry(tb testing.TB, s stint.Scheduler) *stint.Permit {
	tb.Helper()
	p, ok := s.TryAcquire(tb.Context())
	if !ok {
		tb.Fatal("TryAcquire found no free slot")
	}
	return &p
}

// permits are the permits of several calls, in the order of the calls.
type permits []*stint.Permit

// takeSlots calls TryAcquire n times, for slots that must be free.
func takeSlots(tb testing.TB, s stint.Scheduler, n int) permits {
	tb.Helper()
	all := make(permits, 0, n)
	for i := range n {
		p, ok := s.TryAcquire(tb.Context())
		if !ok {
			tb.Fatalf("slot %d of %d is not free", i+1, n)
		}
		all = append(all, &p)
	}
	return all
}

// release releases all permits.
func (all permits) release() {
	for _, p := range all {
		p.Release()
	}
}

// releaseSlot releases p and lets everything settle.
func releaseSlot(p *stint.Permit) {
	p.Release()
	synctest.Wait()
}
