package sched //nolint:testpackage // when the lock's holder looks for operations cannot be seen from outside

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// An operation that is left with the lock's holder just before that unlocks is performed by one of
// the two: none is left until the lock is next taken.
func TestB4_NoOperationIsLeftBehind(t *testing.T) {
	const rounds = 50_000
	e := New(Config{Limit: 1})
	var round, left atomic.Int64
	var both sync.WaitGroup
	meet := func(n int64) { // as closely as two processors can
		for round.Add(1); round.Load() < 2*n; {
			runtime.Gosched()
		}
	}
	both.Go(func() {
		for n := range int64(rounds) {
			meet(3*n + 1)
			e.lock()
			e.unlock()
			meet(3*n + 2)
			meet(3*n + 3)
		}
	})
	both.Go(func() {
		for n := range int64(rounds) {
			x := e.entries.waiter(Ask{Weight: 1, Tier: 3})
			meet(3*n + 1)
			e.deferArrival(x)
			e.flush()
			meet(3*n + 2)
			if !e.nonePending() {
				left.Add(1)
				e.flush()
			}
			<-x.ready
			p := x.permit()
			p.Release()
			meet(3*n + 3)
		}
	})
	both.Wait()
	if n := left.Load(); n > 0 {
		t.Errorf("of %d operations, %d were left behind", rounds, n)
	}
}
