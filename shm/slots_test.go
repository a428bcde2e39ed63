//go:build linux

package shm_test

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
	"github.com/stintgo/stint/shm"
)

func open(t *testing.T, path string, geometry shm.Geometry) *shm.Region {
	t.Helper()
	r, err := shm.Open(path, geometry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// punctual opens a region without sweeps, so that grants are not taken back on a slow
// machine, and returns its slots.
func punctual(t *testing.T, path string, geometry shm.Geometry) *shm.Slots {
	t.Helper()
	r := open(t, path, geometry)
	r.NeverSweep()
	return r.Slots(0)
}

func TestB8_SlotsContract(t *testing.T) {
	slotstest.Run(t, func(t *testing.T, limit, n int) (all []stint.Slots) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "region")
		for range n {
			all = append(all, open(t, path, shm.Geometry{Slots: []int{limit}}).Slots(0))
		}
		return all
	})
}

// A higher tier of one process is served before a lower tier of another, whatever the
// order of arrival, among the processes and within each.
func TestB8_TiersOverProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	b := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	held := mustTry(t, a)
	var order []stint.Priority // guarded by the slot: only its holder appends
	var all sync.WaitGroup
	for i, tier := range []stint.Priority{stint.Low, stint.High, stint.Normal, stint.Highest, stint.Lower} {
		s := []stint.Scheduler{a, b}[i%2].At(tier)
		all.Go(func() {
			p, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, tier)
			p.Release()
		})
		for a.Stats().Queued+b.Stats().Queued <= i { // until it waits
			runtime.Gosched()
		}
	}
	held.Release()
	all.Wait()
	want := []stint.Priority{stint.Highest, stint.High, stint.Normal, stint.Low, stint.Lower}
	if !slices.Equal(order, want) {
		t.Errorf("the order was %v, want %v", order, want)
	}
}

// Nested Runs of a function run on its slot before what waits in lower tiers of other
// processes.
func TestB8_NestedRunKeepsItsSlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	s := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	other := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	var ended atomic.Bool
	after := func(context.Context) (bool, error) { return ended.Load(), nil }
	lower, err := stint.Run(t.Context(), s, func(ctx context.Context) (*stint.Future[bool], error) {
		lower := stint.Go(context.WithoutCancel(ctx), other.At(stint.Low), after)
		for range 5 {
			if _, err := stint.Run(ctx, s, func(context.Context) (int, error) { return 0, nil }); err != nil {
				t.Error(err)
			}
		}
		ended.Store(true)
		return lower, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after, err := lower.Wait(t.Context()); !after || err != nil {
		t.Errorf("the other process has got the slot before the function had ended, or %v", err)
	}
}

// What the holder of a slot writes is visible to the next holder, also through another
// mapping of the memory. The race detector must know that.
func TestB8_SlotsOrderMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	count := 0
	var all sync.WaitGroup
	for range 2 {
		s := stint.New(1, stint.Config{Slots: open(t, path, shm.Geometry{Slots: []int{1}}).Slots(0)})
		all.Go(func() {
			for range 200 {
				p, err := s.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				count++
				p.Release()
			}
		})
	}
	all.Wait()
	if count != 400 {
		t.Errorf("counted %d, want 400", count)
	}
}

func TestB8_SlotsMisuse(t *testing.T) {
	slots := open(t, filepath.Join(t.TempDir(), "region"), shm.Geometry{Slots: []int{2}}).Slots(0)
	slots.Bind(func() {}, nil)
	grant, err := slots.TryAcquire(stint.Normal)
	if err != nil {
		t.Fatal(err)
	}
	slots.Release(grant)
	again, err := slots.TryAcquire(stint.Normal)
	if err != nil || again == grant {
		t.Fatalf("the second grant is %d like the first, %v", again, err)
	}
	for name, misuse := range map[string]func(){
		"late release":         func() { slots.Release(grant) },
		"release of nothing":   func() { slots.Release(0) },
		"release of something": func() { slots.Release(7) },
		"second scheduler":     func() { slots.Bind(func() {}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			misuse()
		})
	}
	slots.Release(again)
}

// Tasks of one process hand their slots to one another for a limited time while another
// process waits in the same tier.
func TestB8_RunsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	busy, other := punctual(t, path, one), stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	busy.Bind(func() {}, nil)
	grant, err := busy.TryAcquire(stint.Normal)
	if err != nil {
		t.Fatal(err)
	}
	busy.Want(stint.Normal, 1000)
	waiter := arrive(t, other)
	const most = 64
	for n := 0; ; n++ {
		busy.Release(grant)
		if grant, err = busy.TryAcquire(stint.Normal); err != nil {
			break
		}
		if n == most {
			t.Fatalf("the process continued %d times while another waited", n)
		}
	}
	served(t, waiter)
}

// wanted opens a region with one slot, which this process holds and waits for.
func wanted(t *testing.T, path string) (*shm.Region, *shm.Slots, stint.Grant) {
	t.Helper()
	r := open(t, path, one)
	slots := r.Slots(0)
	slots.Bind(func() {}, nil)
	grant, err := slots.TryAcquire(stint.Normal)
	if err != nil {
		t.Fatal(err)
	}
	slots.Want(stint.Normal, 1)
	return r, slots, grant
}

// If only this process waits, a slot that it releases is for its next task, and no
// watcher is woken.
func TestB8_OwnSlotCausesNoWakeup(t *testing.T) {
	r, slots, grant := wanted(t, filepath.Join(t.TempDir(), "region"))
	var err error
	rung := r.Undisturbed(func() {
		slots.Release(grant)
		grant, err = slots.TryAcquire(stint.Normal)
	})
	if err != nil || rung != 0 {
		t.Errorf("the slot was taken again: %v; the process was rung %d times", err, rung)
	}
}

// A slot that is kept for a task that does not start is released to others.
func TestB8_KeptSlotIsReleased(t *testing.T) {
	for name, then := range map[string]func(busy *shm.Slots){
		"no caller waits": func(busy *shm.Slots) { busy.Want(stint.High, 0) },
		"no task starts":  func(*shm.Slots) {},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "region")
			busy, other := open(t, path, one).Slots(0), open(t, path, one).Slots(0)
			busy.Bind(func() {}, nil)
			other.Bind(func() {}, nil)
			grant, err := busy.TryAcquire(stint.Normal)
			if err != nil {
				t.Fatal(err)
			}
			busy.Want(stint.High, 1)
			other.Want(stint.Normal, 1)
			busy.Release(grant)
			then(busy)
			until(t, "the slot is not released", func() bool {
				_, err := other.TryAcquire(stint.Normal)
				return err == nil
			})
		})
	}
}

// A process at a limit of its own, or paused, does not keep slots from others, even if it
// has the waiter of the highest tier. When it can continue it is served as before.
func TestB8_ProcessAtItsOwnLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	two := shm.Geometry{Slots: []int{2}}
	a := stint.New(1, stint.Config{Slots: punctual(t, path, two)})
	b := stint.New(2, stint.Config{Slots: punctual(t, path, two)})
	ofA := served(t, arrive(t, a))
	urgent := arrive(t, a.At(stint.Highest))
	ofB := []*stint.Permit{served(t, arrive(t, b))} // although the slot was granted to a
	other := arrive(t, b)
	ofB[0].Release()
	ofB[0] = served(t, other)
	ofA.Release()
	ofA = served(t, urgent)

	ofA.Release()
	a.Pause("test")
	urgent = arrive(t, a.At(stint.Highest))
	ofB = append(ofB, served(t, arrive(t, b)))
	other = arrive(t, b)
	ofB[0].Release()
	served(t, other)
	a.Resume()
	ofB[1].Release()
	served(t, urgent)
}

// No caller waits for ever if each process has a limit of its own, and all are often
// at that limit.
func TestB8_OwnLimitsAndTheSharedOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all sync.WaitGroup
	for range 3 {
		s := stint.New(2, stint.Config{Slots: punctual(t, path, shm.Geometry{Slots: []int{3}})})
		for i := range 6 {
			all.Go(func() {
				for range 300 {
					p, err := s.At(stint.Priority(i % 3)).Acquire(ctx)
					if err != nil {
						t.Errorf("no slot: %v", err)
						return
					}
					runtime.Gosched()
					p.Release()
				}
			})
		}
	}
	all.Wait()
}

// arrive calls Acquire, and returns once that call waits or has a slot.
func arrive(t *testing.T, s stint.Scheduler) *pending {
	t.Helper()
	before := s.Stats()
	w := goAcquire(t.Context(), s)
	until(t, "the call of Acquire does not arrive", func() bool {
		now := s.Stats()
		return now.Running+now.Queued > before.Running+before.Queued
	})
	return w
}

// served waits until a call of Acquire has its slot.
func served(t *testing.T, w *pending) *stint.Permit {
	t.Helper()
	select {
	case err := <-w.answer:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("a waiter is not served although there is a slot")
	}
	return &w.permit
}

// If two processes always have waiters in a high tier, waiters of a low tier in another
// process are still served, and soon enough.
func TestB8_NoProcessStarves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	one := shm.Geometry{Slots: []int{1}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var turns atomic.Int64
	for range 2 {
		high := stint.New(1, stint.Config{Slots: punctual(t, path, one)}).At(stint.High)
		for range 3 {
			all.Go(func() {
				for {
					p, err := high.Acquire(ctx)
					if err != nil {
						return
					}
					turns.Add(1)
					p.Release()
				}
			})
		}
	}
	for turns.Load() < 100 {
		runtime.Gosched()
	}
	low := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	for range 20 {
		p, err := low.At(stint.Low).Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.Release()
	}
}
