//go:build linux

package shm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/shm"
)

// patience is for machines that are very busy; no test waits for it if all is
// well.
const patience = time.Minute

// kills is how many processes are killed. STINT_SEEDS is another number, for those
// who have time.
func kills(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("STINT_SEEDS")
	if text == "" {
		return killsUsual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("STINT_SEEDS: %v", err)
	}
	return n
}

// Eight processes take and give back slots, and are killed at random. Each slot is
// had by one at a time, which the processes see by locks of the kernel, what a dead
// one had comes back while the others work, and in the end all slots are there.
func TestB8_KilledProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	lot := seeded.Rand(t)
	var left atomic.Int64
	left.Store(kills(t))
	took := make(chan time.Duration, left.Load())
	stop := keepAsking(t, path)
	var all sync.WaitGroup
	for range 8 {
		lot := rand.New(rand.NewPCG(lot.Uint64(), 0))
		all.Go(func() {
			for left.Add(-1) >= 0 {
				p := start(t, "work", path)
				if !p.await(1 + lot.IntN(100)) {
					t.Error("a process ended by itself")
					return
				}
				killed := shm.Now()
				if !p.kill() {
					t.Error("a process ended by itself")
					return
				}
				if err := giveUp(path, p.cmd.Process.Pid); err != nil {
					t.Error(err)
					return
				}
				took <- time.Duration(shm.Now() - killed)
			}
		})
	}
	all.Wait()
	stop()
	close(took)
	logTimes(t, took)
	wantAll(t, path)
}

// keepAsking takes all slots and gives them back, again and again, through a region
// of its own: so somebody waits for each slot that the dead have.
func keepAsking(t *testing.T, path string) (stop func()) {
	t.Helper()
	n := geometry.Slots[0]
	s := stint.New(n, stint.Config{Slots: open(t, path, geometry).Slots(0)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var held []stint.Permit
			for len(held) < n {
				p, err := s.Acquire(ctx)
				if err != nil {
					break
				}
				held = append(held, p)
			}
			for i := range held {
				held[i].Release()
			}
		}
	}()
	return func() { cancel(); <-done }
}

// giveUp waits until a process that has ended has nothing of a region any more.
func giveUp(path string, pid int) error {
	for began := shm.Now(); ; runtime.Gosched() {
		info, err := shm.Inspect(path)
		has := func(h shm.ProcessUsage) bool { return h.PID == pid }
		switch {
		case err != nil:
			return err
		case !slices.ContainsFunc(info.Slots[0].Holders, has):
			return nil
		case shm.Now()-began > int64(patience):
			return fmt.Errorf("slots of a dead process do not come back: %+v", info)
		}
	}
}

// logTimes tells how fast deaths were made good. How busy the machine is, nobody
// knows, so nothing is asked of it.
func logTimes(t *testing.T, took <-chan time.Duration) {
	t.Helper()
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	if len(all) == 0 {
		t.Fatal("nobody was killed")
	}
	slices.Sort(all)
	late, _ := slices.BinarySearch(all, 100*time.Millisecond)
	t.Logf("of %d deaths half were made good in %v, 99%% in %v, all in %v; %d took 100ms or more", len(all),
		all[len(all)/2], all[len(all)*99/100], all[len(all)-1], len(all)-late)
}

// wantAll takes all slots of a region.
func wantAll(t *testing.T, path string) {
	t.Helper()
	r := open(t, path, geometry)
	s := stint.New(geometry.Slots[0], stint.Config{Slots: r.Slots(0)})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	held := make([]stint.Permit, geometry.Slots[0])
	for i := range held {
		var err error
		if held[i], err = s.Acquire(ctx); err != nil {
			t.Fatalf("a slot is lost: %v; %+v", err, r.Slots(0).Usage())
		}
	}
	if u := r.Slots(0).Usage(); u.Running != geometry.Slots[0] || len(u.Holders) != 1 {
		t.Errorf("usage is %+v", u)
	}
	for i := range held {
		held[i].Release()
	}
}

// A slot of a process that was killed comes to whoever waits, and to one who only
// tries.
func TestB8_SlotOfTheDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	slots := r.Slots(0)
	slots.Bind(func() {}, nil)
	for range geometry.Slots[0] {
		if _, err := slots.TryAcquire(stint.Normal); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := slots.TryAcquire(stint.Normal); err == nil {
		t.Fatal("got a slot above the limit")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var holders []*process
	for range geometry.Slots[0] {
		p := start(t, "hold", path)
		if !p.await(1) {
			t.Fatal("a process got no slot")
		}
		holders = append(holders, p)
	}

	waiter := open(t, path, geometry)
	s := stint.New(1, stint.Config{Slots: waiter.Slots(0)})
	if _, ok := s.TryAcquire(t.Context()); ok {
		t.Fatal("got a slot above the limit")
	}
	if got := waiter.Slots(0).Usage(); got.Running != 3 || len(got.Holders) != 3 {
		t.Errorf("usage is %+v, want three holders", got)
	}
	holders[0].kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Acquire(ctx); err != nil {
		t.Fatalf("the slot of a dead process does not come back: %v", err)
	}
	holders[1].kill()
	tries := open(t, path, geometry).Slots(0)
	tries.Bind(func() {}, nil)
	for began := shm.Now(); ; {
		if _, err := tries.TryAcquire(stint.Lowest); err == nil {
			break
		}
		if shm.Now()-began > int64(patience) {
			t.Fatal("one who only tries never gets the slot of a dead process")
		}
	}
}
