package stint_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// Work that a release makes startable gets a free slot, although the slots have stopped to
// notify: at the last notification nothing could start.
func TestSlots_ReleaseMakesOtherWorkStartable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ofKey = 8
		pool := slotstest.NewPool(2)
		f := pool.Join("a")
		s := stint.New(4, stint.Config{Slots: f, PerKey: 1, Caps: stint.Caps{Lowest: 2}})
		k := s.Key("k")
		plain, holder := mustTry(t, s), mustTry(t, k)
		short := claimSlot(t.Context(), s) // no slot is free for it
		lowest := claimSlot(t.Context(), s.At(stint.Lowest))
		pool.Resize(4)
		synctest.Wait()
		releaseSlot(&short.permit) // this is notified, and not used: the lowest tier is at its cap
		var claims []*claim
		for range ofKey {
			claims = append(claims, claimSlot(t.Context(), k))
		}
		for _, next := range claims[:ofKey-1] { // until it is the guard's turn, for the lowest tier
			releaseSlot(holder)
			if !next.holds() {
				t.Fatal("the next of the key was not started")
			}
			holder = &next.permit
		}
		releaseSlot(holder)
		if last := claims[ofKey-1]; !last.holds() {
			t.Errorf("the last of the key waits, though 2 of 4 slots are free: the lowest tier holds one: %t", lowest.holds())
		}
		for _, p := range []*stint.Permit{plain, &lowest.permit} {
			releaseSlot(p)
		}
		synctest.Wait()
		releaseSlot(&claims[ofKey-1].permit)
		wantAtRest(t, s, f)
	})
}

// One notification is for any number of slots.
func TestSlots_NotificationStartsAllThatMayStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(1)
		f := pool.Join("a")
		s := stint.New(5, stint.Config{Slots: f})
		claims := []*claim{claimSlot(t.Context(), s)}
		for range 4 {
			claims = append(claims, claimSlot(t.Context(), s))
		}
		pool.Resize(4)
		synctest.Wait()
		if n := f.Held(); n != 4 {
			t.Errorf("%d slots are held, want all 4", n)
		}
		for _, c := range claims {
			releaseSlot(&c.permit)
		}
		wantAtRest(t, s, f)
	})
}

// One notification is also for all functions that wait to resume, when nothing is queued.
func TestSlots_NotificationResumesAllThatMayResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(4)
		f := pool.Join("a")
		s := stint.New(5, stint.Config{Slots: f})
		inner, outer := make(chan struct{}), make(chan struct{})
		var resumed atomic.Int32
		for range 2 {
			stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
				n, err := stint.Go(ctx, s, func(context.Context) (int, error) {
					<-inner
					return 0, nil
				}).Wait(ctx)
				resumed.Add(1)
				<-outer
				return n, err
			})
			synctest.Wait()
		}
		pool.Resize(0)
		close(inner)
		synctest.Wait()
		if n := resumed.Load(); n != 0 {
			t.Errorf("%d functions have resumed without a slot", n)
		}
		pool.Resize(4)
		synctest.Wait()
		if n := resumed.Load(); n != 2 {
			t.Errorf("%d functions have resumed, want 2", n)
		}
		close(outer)
		wantAtRest(t, s, f)
	})
}

// A release that makes room in a bounded queue admits a blocked submitter, also if its job
// cannot start.
func TestSlots_ReleaseAdmitsABlockedSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		s := stint.New(5, stint.Config{Slots: f, Queue: 1})
		permit := mustTry(t, s)
		queued := claimSlot(t.Context(), s)
		submitted := false
		go func() {
			stint.Go(t.Context(), s, func(context.Context) (int, error) { return 0, nil })
			submitted = true
		}()
		synctest.Wait()
		if submitted {
			t.Error("a job was accepted by a full queue")
		}
		releaseSlot(permit)
		if !queued.holds() || !submitted {
			t.Errorf("after a release: the waiter holds a slot: %t, the job is accepted: %t; want both",
				queued.holds(), submitted)
		}
		releaseSlot(&queued.permit)
		wantAtRest(t, s, f)
	})
}
