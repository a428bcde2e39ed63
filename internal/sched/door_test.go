package sched //nolint:testpackage // what the door remembers shows nowhere but in the memory it takes

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

// The door forgets the keys of those it has let in.
func TestA8_DoorForgetsKeys(t *testing.T) {
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
			t.Fatalf("%d wait at the door, want 99", n)
		}
		p.Release()
		synctest.Wait()
		e.lock()
		defer e.unlock()
		if e.door.log.Keys().Len() != 0 || e.queue.log().Keys().Len() != 0 {
			t.Errorf("%d keys are remembered at the door, %d in the queue", e.door.log.Keys().Len(), e.queue.log().Keys().Len())
		}
	})
}
