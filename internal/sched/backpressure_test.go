package sched //nolint:testpackage // the keys that backpressure keeps show only in its memory

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
)

// nothing is a job whose function does nothing.
type nothing struct{ Call }

func (*nothing) Do(context.Context) error { return nil }
func (*nothing) Forget()                  {}

// The keys of submitters that have been admitted are forgotten.
func TestA8_AdmittedSubmittersLeaveNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 1, Queue: 1})
		p, err := e.Take(t.Context(), Ask{Weight: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			go func() {
				job := new(nothing)
				job.Init(t.Context(), e)
				job.Go(job, Ask{Key: strconv.Itoa(i), Weight: 1})
			}()
		}
		synctest.Wait()
		if n := e.Stats(func() {}).Blocked; n != 99 {
			t.Fatalf("%d submitters are blocked, want 99", n)
		}
		p.Release()
		synctest.Wait()
		e.lock()
		defer e.unlock()
		if e.blocked.log.Keys().Len() != 0 || e.queue.log().Keys().Len() != 0 {
			t.Errorf("%d keys are kept for blocked submitters, %d for the queue; want none",
				e.blocked.log.Keys().Len(), e.queue.log().Keys().Len())
		}
	})
}
