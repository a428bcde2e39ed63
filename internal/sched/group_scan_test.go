package sched //nolint:testpackage // how long the lock is held cannot be seen from outside

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// queueBetween queues a function of a group, n of another one, and a second one of the first group,
// all behind a permit.
func queueBetween(t *testing.T, e *Engine, n int) (fails, others *Group) {
	t.Helper()
	plain := Ask{Weight: 1, Tier: 3}
	permit := mustTake(t, e, plain)
	t.Cleanup(permit.Release)
	fails, others = new(Group), new(Group)
	fails.Init(t.Context(), e, plain)
	others.Init(t.Context(), e, plain)
	nothing := func(context.Context) error { return nil }
	fails.Go(nothing)
	for range n {
		others.Go(nothing)
	}
	fails.Go(nothing)
	return fails, others
}

// What a group that fails has queued is looked for among at most scanMax functions before the lock is
// released.
func TestA6_FailedGroupScansInPieces(t *testing.T) {
	const between = 3 * scanMax
	e := New(Config{Limit: 1})
	fails, _ := queueBetween(t, e, between)
	e.lock()
	defer e.unlock()
	found, calls := 0, 0
	for over := false; !over; calls++ {
		var all []piece
		all, over = fails.cancellation.pieces(&e.queue)
		found += len(all)
	}
	if found != 2 || calls != between/scanMax+1 {
		t.Errorf("%d functions found in %d calls, want 2 in %d", found, calls, between/scanMax+1)
	}
}

// Functions with a key are refused in pieces, too, in the order of their arrival.
func TestA6_FailedGroupRefusesKeyedFunctionsInPieces(t *testing.T) {
	const n = 3*scanMax + 1
	e := New(Config{Limit: 1})
	permit := mustTake(t, e, Ask{Weight: 1, Tier: 3})
	t.Cleanup(permit.Release)
	fails := new(Group)
	fails.Init(t.Context(), e, Ask{Weight: 1, Tier: 3, Key: "a"})
	for range n {
		fails.Go(func(context.Context) error { return nil })
	}
	e.lock()
	defer e.unlock()
	found, calls, last := 0, 0, int64(0)
	for over := false; !over; calls++ {
		var all []piece
		all, over = fails.cancellation.pieces(&e.queue)
		for _, p := range all {
			if p.since() <= last {
				t.Fatal("a function is found after a later one")
			}
			last = p.since()
		}
		found += len(all)
		e.refuseThese(all, context.Canceled)
	}
	if found != n || calls != n/scanMax+1 {
		t.Errorf("%d functions found in %d calls, want %d in %d", found, calls, n, n/scanMax+1)
	}
}

// A group that fails behind many others has all of its functions refused, and theirs stay.
func TestA6_FailedGroupBesideMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const between = 2*scanMax + 7
		e, failure := New(Config{Limit: 1}), errors.New("fails")
		fails, others := queueBetween(t, e, between)
		fails.Fail(failure)
		synctest.Wait()
		if err := fails.Wait(); !errors.Is(err, failure) {
			t.Errorf("Wait: %v", err)
		}
		if n := e.Stats(func() {}).Queued; n != between {
			t.Errorf("%d functions are queued, want the %d of the other group", n, between)
		}
		others.Fail(failure)
		if err := others.Wait(); !errors.Is(err, failure) {
			t.Errorf("Wait: %v", err)
		}
		if n := e.Stats(func() {}).Queued; n != 0 {
			t.Errorf("%d functions are queued, want 0", n)
		}
	})
}
