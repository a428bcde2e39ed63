//go:build linux

package shm_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// A task that waits for its own key does not give its process precedence: the slots would
// go to other tasks of the process, of lower tiers.
func TestB8_TaskHeldBackByItsKey(t *testing.T) {
	path, two := filepath.Join(t.TempDir(), "region"), shm.Geometry{Slots: []int{2}}
	a := stint.New(2, stint.Config{Slots: punctual(t, path, two), PerKey: 1})
	b := stint.New(2, stint.Config{Slots: punctual(t, path, two)})
	k := a.Key("k").At(stint.Highest)
	running := served(t, arrive(t, k))
	held := arrive(t, k)
	slot := served(t, arrive(t, b))

	const tasks = 20
	var order []stint.Priority // guarded by the slot: only its holder appends
	var all sync.WaitGroup
	queue := func(s stint.Scheduler, tier stint.Priority) {
		all.Add(1)
		stint.Go(t.Context(), s.At(tier), func(context.Context) (int, error) {
			order = append(order, tier)
			all.Done()
			return 0, nil
		})
	}
	for range tasks {
		queue(a, stint.Low)
		queue(b, stint.Normal)
	}
	until(t, "not all tasks wait", func() bool { return a.Stats().Queued == tasks+1 && b.Stats().Queued == tasks })
	slot.Release()
	all.Wait()
	if !slices.Equal(order[:tasks], slices.Repeat([]stint.Priority{stint.Normal}, tasks)) {
		t.Errorf("the order was %v", order)
	}
	running.Release()
	served(t, held).Release()
}

// The slot of a task goes to the next task of its key, if that one precedes all others:
// it has waited for nothing else.
func TestB8_SlotThatFreesItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a := stint.New(2, stint.Config{Slots: punctual(t, path, one), PerKey: 1})
	b := stint.New(2, stint.Config{Slots: punctual(t, path, one)})
	k := a.Key("k").At(stint.Highest)
	running := served(t, arrive(t, k))
	held, other := arrive(t, k), arrive(t, b)
	running.Release()
	if got := a.Stats().Running; got != 1 {
		t.Fatalf("%d tasks of the key run, want the next", got)
	}
	served(t, held).Release()
	served(t, other)
}

// A slot that is released in a process that cannot use it is free at once.
func TestB8_UnusableSlotIsFree(t *testing.T) {
	for name, hold := range map[string]func(s stint.Scheduler){
		"paused": func(s stint.Scheduler) { s.Pause("test") },
		"key":    func(stint.Scheduler) {},
	} {
		t.Run(name, func(t *testing.T) {
			path, two := filepath.Join(t.TempDir(), "region"), shm.Geometry{Slots: []int{2}}
			a := stint.New(3, stint.Config{Slots: punctual(t, path, two), PerKey: 1})
			b := stint.New(2, stint.Config{Slots: punctual(t, path, two)})
			served(t, arrive(t, a.Key("k")))
			arrive(t, a.Key("k"))
			for range 20 { // other processes may take the slot at any moment
				running := served(t, arrive(t, a))
				hold(a)
				running.Release()
				p, ok := b.TryAcquire(t.Context())
				if !ok {
					t.Fatal("a slot that is not held was refused")
				}
				a.Resume()
				p.Release()
				runtime.Gosched()
			}
		})
	}
}
