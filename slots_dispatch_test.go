package stint_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// A release asks the slots once: it starts one of those that wait. The slots have notified the
// scheduler of any other that is free.
func TestSlots_ReleaseAsksForOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(1).Join("a")
		s := stint.New(5, stint.Config{Slots: f})
		permit := mustTry(t, s)
		first, second, third := claimSlot(t.Context(), s), claimSlot(t.Context(), s), claimSlot(t.Context(), s)
		before := f.Tries()
		releaseSlot(permit)
		if n := f.Tries() - before; n != 1 {
			t.Errorf("a release called TryAcquire %d times, want 1", n)
		}
		for _, c := range []*claim{first, second, third} {
			if !c.holds() {
				t.Fatal("the slot was not passed on")
			}
			releaseSlot(&c.permit)
		}
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
			t.Errorf("after a release: the waiter holds a slot: %t, the job is accepted: %t; want both", queued.holds(), submitted)
		}
		releaseSlot(&queued.permit)
		wantAtRest(t, s, f)
	})
}
