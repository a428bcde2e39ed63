package sched //nolint:testpackage // the run times that the engine records show only in estimates

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The time in which a function has suspended its slots is not part of how long slots are
// held, and the time before is counted once.
func TestB6_SuspendedHoldersAreNotTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 2, Holders: true})
		awaited := new(Call)
		awaited.InitByHand(e)
		job := &function{fn: func(ctx context.Context) {
			time.Sleep(time.Second)
			awaited.Wait(context.WithoutCancel(ctx))
			time.Sleep(time.Second)
		}}
		job.Init(t.Context(), e)
		job.Go(job, Ask{Weight: 1, Tier: 3})
		time.Sleep(time.Minute)
		awaited.Claim()
		awaited.Settle(nil)
		synctest.Wait()
		e.lock()
		if begun, more := e.holders.begun(8); len(begun) != 1 || begun[0] != e.queue.clock.age() || more != 0 {
			t.Errorf("slots were given out at %v, want one, at %v", begun, e.queue.clock.age())
		}
		e.unlock()
		<-job.Done()
		e.lock()
		defer e.unlock()
		if j := &e.queue.jobs; j.samples != 2 || time.Duration(j.mean) != time.Second {
			t.Errorf("slots are held for %v, by %v samples; want %v, by 2", time.Duration(j.mean), j.samples, time.Second)
		}
	})
}
