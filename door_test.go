package stint //nolint:testpackage // what the door remembers shows nowhere but in the memory it takes

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
)

// The door forgets the keys of those it has let in.
func TestA8_DoorForgetsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1, Config{Queue: 1})
		if err := s.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			go Go(t.Context(), s.Key(strconv.Itoa(i)), func(context.Context) (int, error) { return 0, nil })
		}
		synctest.Wait()
		if n := s.Stats().Blocked; n != 99 {
			t.Fatalf("%d wait at the door, want 99", n)
		}
		s.Release()
		synctest.Wait()
		c := s.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.door.Keys() != 0 || c.log.Keys() != 0 {
			t.Errorf("%d keys are remembered at the door, %d in the queue", c.door.Keys(), c.log.Keys())
		}
	})
}
