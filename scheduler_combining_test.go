package stint_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// These tests hold a scheduler's lock, by way of the one function of the user's
// that is called under it, and look at what others do meanwhile. A goroutine of
// a bubble that waited for the lock itself would keep synctest.Wait from
// returning.

// lockable is a scheduler whose lock can be held: an arrival of a key for which
// there is a gate holds it until the gate is closed.
type lockable struct {
	stint.Scheduler
	gates  map[string]chan struct{}
	holder *claim // of the last hold
}

func newLockable(limit int, cfg stint.Config) *lockable {
	l := &lockable{gates: map[string]chan struct{}{}}
	cfg.Share = func(key string) int {
		if gate := l.gates[key]; gate != nil {
			<-gate
		}
		return 1
	}
	l.Scheduler = stint.New(limit, cfg)
	return l
}

// hold has an Acquire of key k hold the lock until let is called.
func (l *lockable) hold(t *testing.T) *claim {
	t.Helper()
	l.gates["k"] = make(chan struct{})
	l.holder = claimSlot(t.Context(), l.Key("k"))
	return l.holder
}

func (l *lockable) let() {
	close(l.gates["k"])
	synctest.Wait()
}

// releaseKey releases the slot of the goroutine that held the lock.
func (l *lockable) releaseKey() { releaseSlot(&l.holder.permit) }

// wantHolderServed checks that the goroutine that held the lock has its slot now,
// and that all slots are free once it has released that.
func (l *lockable) wantHolderServed(t *testing.T) {
	t.Helper()
	if !l.holder.holds() {
		t.Error("the holder of the lock has no slot")
	}
	l.releaseKey()
	wantAllFree(t, l.Scheduler)
}

func TestA2_ArrivalsLeftWithTheLockHolderKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		permit := mustTry(t, s.Scheduler)
		holder := s.hold(t)
		var order []int
		for i := range 5 {
			go func() {
				if p, err := s.Acquire(t.Context()); err == nil {
					order = append(order, i)
					p.Release()
				}
			}()
			synctest.Wait() // it waits on a channel already
		}
		s.let()
		wantCounts(t, s.Scheduler, 1, 6)
		releaseSlot(permit)
		if !holder.holds() {
			t.Fatal("the holder of the lock was there first and was passed over")
		}
		s.releaseKey()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		wantAllFree(t, s.Scheduler)
	})
}

func TestB4_ReleaseDoesNotWaitForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		permit := mustTry(t, s.Scheduler)
		first := claimSlot(t.Context(), s.Scheduler) // from now on, a Release needs the lock
		holder := s.hold(t)
		third := claimSlot(t.Context(), s.Scheduler)
		permit.Release() // or this test would wait for ever
		s.let()
		if !first.holds() || holder.over || third.over {
			t.Fatal("the slot went to the wrong one")
		}
		releaseSlot(&first.permit)
		s.releaseKey()
		if !third.holds() {
			t.Error("the third has no slot")
		}
		third.permit.Release()
		wantAllFree(t, s.Scheduler)
	})
}

func TestA1_RunDoesNotWaitForTheLockToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		running := make(chan struct{})
		contexts := make(chan context.Context, 1)
		var answer *claim
		go func() {
			over := new(claim)
			_, over.err = stint.Run(t.Context(), s.Scheduler, func(ctx context.Context) (int, error) {
				contexts <- ctx
				<-running
				return 0, nil
			})
			over.over = true
			answer = over
		}()
		synctest.Wait()
		first := claimSlot(t.Context(), s.Scheduler)
		s.hold(t)
		close(running)
		synctest.Wait()
		if answer == nil || answer.err != nil {
			t.Fatal("Run waits for the lock")
		}
		s.let()
		if !first.holds() {
			t.Error("the slot was not handed over")
		}
		if err := (<-contexts).Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the function's context has error %v after its end", err)
		}
		releaseSlot(&first.permit)
		s.wantHolderServed(t)
	})
}

// One slot is in use, and two goroutines wait for it. So three releases of copies of its
// permit find a slot in use, whichever goroutine has it, and all others panic.
func TestB4_ReleaseOfTooMuchPanicsThoughTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		permit := mustTry(t, s.Scheduler)
		claimSlot(t.Context(), s.Scheduler)
		s.hold(t)
		tooMany := 0
		release := func() {
			defer func() {
				if recover() != nil {
					tooMany++
				}
			}()
			again := *permit
			again.Release()
		}
		release() // leaves the slot with the holder of the lock
		go func() {
			for range 4 { // and this waits: for all it knows, no slot is in use
				release()
			}
		}()
		for range 100 {
			runtime.Gosched() // so that it does
		}
		s.let()
		if tooMany != 2 {
			t.Errorf("%d calls panicked, want 2", tooMany)
		}
		wantCounts(t, s.Scheduler, 0, 0)
	})
}

// known says whether the scheduler watches the context already when the
// goroutine arrives.
func TestA6_CancelOfAnArrivalLeftWithTheLockHolder(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newLockable(1, stint.Config{})
			permit := mustTry(t, s.Scheduler)
			ctx, cancel := context.WithCancelCause(t.Context())
			for range 3 {
				if !known {
					break
				}
				c := claimSlot(ctx, s.Scheduler)
				if !c.waits() {
					t.Fatal("does not wait")
				}
				releaseSlot(permit)
				permit = &c.permit
			}
			s.hold(t)
			c := claimSlot(ctx, s.Scheduler)
			cancel(errAsked)
			s.let()
			if !c.over || !errors.Is(c.err, errAsked) {
				t.Errorf("known %t: has its answer %t, error %v; want the cause", known, c.over, c.err)
			}
			releaseSlot(permit)
			s.wantHolderServed(t)
		})
	}
}

func TestB7_CloseAnswersArrivalsLeftWithTheLockHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		permit := mustTry(t, s.Scheduler)
		holder := s.hold(t)
		left := claimSlot(t.Context(), s.Scheduler)
		go s.Close()
		s.let()
		if !errors.Is(holder.err, stint.ErrClosed) || !errors.Is(left.err, stint.ErrClosed) {
			t.Errorf("errors %v and %v, want %v", holder.err, left.err, stint.ErrClosed)
		}
		permit.Release()
		wantCounts(t, s.Scheduler, 0, 0)
	})
}

func TestA8_RoomOfASlotLeftIsThereForTheNextArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{Queue: 2, WhenFull: stint.Refuse})
		permit := mustTry(t, s.Scheduler)
		first := claimSlot(t.Context(), s.Scheduler)
		holder := s.hold(t) // with it the queue is full,
		permit.Release()    // and now it is not
		third := claimSlot(t.Context(), s.Scheduler)
		s.let()
		if third.err != nil {
			t.Errorf("refused with %v", third.err)
		}
		for _, c := range []*claim{first, holder, third} {
			if !c.holds() {
				t.Fatal("no slot")
			}
			releaseSlot(&c.permit)
		}
		wantAllFree(t, s.Scheduler)
	})
}

func TestB3_SlotLeftIsNotForALaterArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(1, stint.Config{})
		permit := mustTry(t, s.Scheduler)
		first := claimSlot(t.Context(), s.Scheduler)
		s.hold(t)
		permit.Release()
		highest := claimSlot(t.Context(), s.At(stint.Highest))
		s.let()
		if !first.holds() || highest.over {
			t.Errorf("the one that waited has the slot %t, the later one its answer %t; want true, false",
				first.holds(), highest.over)
		}
		releaseSlot(&first.permit)
		releaseSlot(&highest.permit)
		s.releaseKey()
		wantAllFree(t, s.Scheduler)
	})
}

// A goroutine that only just missed the lock's holder does not wait until that
// one has called what the user wants called of the jobs that it has refused.
func TestA6_ArrivalsDoNotWaitForTeardownsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLockable(5, stint.Config{PerKey: 1, Queue: 1})
		var keys permits
		for _, key := range []string{"a", "b", "k"} {
			keys = append(keys, mustTry(t, s.Key(key)))
		}
		plain := takeSlots(t, s.Scheduler, 2)
		torn := make(chan struct{})
		stint.Go(t.Context(), s.Key("a"), nothing).Teardown(func() { <-torn })
		blocked := submit(t.Context(), s.Key("b"), nothing) // the queue is full
		synctest.Wait()

		gate := make(chan struct{})
		s.gates["b"] = gate
		go s.Clear() // refuses the first job, and holds the lock while it queues the second
		synctest.Wait()
		key := s.hold(t)
		close(gate) // the holder takes in the Acquire of key k, which holds the lock,
		synctest.Wait()
		heavy := claimSlot(t.Context(), s.Weight(2)) // and this one is left
		s.let()
		releaseSlot(plain[0])
		releaseSlot(plain[1])
		if !heavy.holds() {
			t.Error("waits for the teardown of a job that it does not know")
		}
		close(torn)
		releaseSlot(&heavy.permit)
		for _, p := range append(keys, &key.permit) {
			releaseSlot(p)
		}
		if err := blocked.answer(t); err != nil || !key.holds() {
			t.Errorf("the submitter's error is %v; key k has a slot %t", err, key.holds())
		}
		wantAllFree(t, s.Scheduler)
	})
}
