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

// punctual opens a region whose participants have all the time that they need to
// accept a slot, and returns its slots.
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

// A higher tier of one process goes before a lower one of another, whoever came
// first, and whoever of a process came first.
func TestB8_TiersOverProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	b := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	held := mustTry(t, a)
	var order []stint.Priority // whoever appends has the slot
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

// What one does with a slot is seen by the next to have it, in another mapping of
// the memory as well; the race detector has to know.
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

// Tasks of one process hand their slots to one another for a while, but not for
// ever when another process waits in the same tier.
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
			t.Fatalf("the process went on %d times while another waited", n)
		}
	}
	served(t, waiter)
}

// wanted is a region with one slot, which this process has and waits for.
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

// A slot that comes back where only this process waits is for its next task, and
// nobody is woken for that.
func TestB8_OwnSlotWakesNobody(t *testing.T) {
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

// A slot that is kept for a task which then does not start comes to others.
func TestB8_KeptSlotComesBack(t *testing.T) {
	for name, then := range map[string]func(busy *shm.Slots){
		"nobody waits":  func(busy *shm.Slots) { busy.Want(stint.High, 0) },
		"nobody starts": func(*shm.Slots) {},
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
			until(t, "the slot does not come back", func() bool {
				_, err := other.TryAcquire(stint.Normal)
				return err == nil
			})
		})
	}
}

// A process at a limit of its own, or paused, keeps no slot from others, even if the
// highest tier waits in it. When it can go on it is served as before.
func TestB8_ProcessAtItsOwnLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	two := shm.Geometry{Slots: []int{2}}
	a := stint.New(1, stint.Config{Slots: punctual(t, path, two)})
	b := stint.New(2, stint.Config{Slots: punctual(t, path, two)})
	ofA := served(t, arrive(t, a))
	urgent := arrive(t, a.At(stint.Highest))
	ofB := []*stint.Permit{served(t, arrive(t, b))} // though the slot was granted to a
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

// Nobody waits for ever where each process has a limit of its own, and all are often
// at it.
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

// arrive acquires a slot, and returns once it waits or has it.
func arrive(t *testing.T, s stint.Scheduler) *pending {
	t.Helper()
	before := s.Stats()
	w := goAcquire(t.Context(), s)
	until(t, "who acquires a slot does not arrive", func() bool {
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
		t.Fatal("who waits is not served, though there is a slot")
	}
	return &w.permit
}

// Two processes always have somebody waiting in a high tier. Those that wait in a
// low one elsewhere are served all the same, and soon enough.
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
