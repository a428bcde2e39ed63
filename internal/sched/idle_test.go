package sched //nolint:testpackage // the gate cannot be seen outside

import (
	"context"
	"testing"
	"testing/synctest"
)

// While a call waits for an idle engine, slots are released on the path with the lock.
// When the last such call has returned, the gate is open again.
func TestB7_WaitIdleLeavesTheGateOpen(t *testing.T) {
	const normal = 3
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 2})
		if !e.TryFast(normal) {
			t.Fatal("a slot is free")
		}
		first, cancelFirst := context.WithCancel(t.Context())
		last, cancelLast := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{first, last} {
			go func() {
				if err := e.WaitIdle(ctx); err == nil {
					t.Error("WaitIdle = nil while a slot is in use")
				}
			}()
		}
		synctest.Wait()
		cancelFirst()
		synctest.Wait()
		if e.gate.word.Load()&slowBit == 0 {
			t.Error("the gate is open while a call waits")
		}
		cancelLast()
		synctest.Wait()
		if e.gate.word.Load()&slowBit != 0 || e.idle.awaited() {
			t.Error("the gate is closed, though no call waits any more")
		}
		if !e.gate.release() {
			t.Error("a slot cannot be released without the lock")
		}
	})
}
