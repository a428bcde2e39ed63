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

// patience is the timeout of these tests. It is for very busy machines; a test that
// passes never waits for it.
const patience = time.Minute

// kills is the number of processes to kill. STINT_SEEDS sets another one, for a longer
// run.
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

// Eight processes take and release slots, and are killed at random. Each slot has one
// holder at a time, which the processes check with locks of the kernel; what a dead
// process held is recovered while the others work; and in the end all slots are there.
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
					t.Error("a process ended without being killed")
					return
				}
				killed := shm.Now()
				if !p.kill() {
					t.Error("a process ended without being killed")
					return
				}
				if err := awaitRecovery(path, p.cmd.Process.Pid); err != nil {
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

// keepAsking takes and releases all slots in a loop, through a region of its own: so
// there is a waiter for each slot of a dead process.
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

// awaitRecovery waits until a process that has ended holds nothing of a region any more.
func awaitRecovery(path string, pid int) error {
	for began := shm.Now(); ; runtime.Gosched() {
		info, err := shm.Inspect(path)
		has := func(h shm.ProcessUsage) bool { return h.PID == pid }
		switch {
		case err != nil:
			return err
		case !slices.ContainsFunc(info.Slots[0].Holders, has):
			return nil
		case shm.Now()-began > int64(patience):
			return fmt.Errorf("slots of a dead process are not recovered: %+v", info)
		}
	}
}

// logTimes logs how long recoveries took. There are no bounds for them, as the load of
// the machine is unknown.
func logTimes(t *testing.T, took <-chan time.Duration) {
	t.Helper()
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	if len(all) == 0 {
		t.Fatal("no process was killed")
	}
	slices.Sort(all)
	late, _ := slices.BinarySearch(all, 100*time.Millisecond)
	t.Logf("of %d recoveries half took at most %v, 99%% %v, all %v; %d took 100ms or more", len(all),
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

// A slot of a killed process goes to a waiter, and to a caller that only tries.
func TestB8_SlotOfADeadProcess(t *testing.T) {
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
		t.Fatalf("the slot of a dead process is not recovered: %v", err)
	}
	holders[1].kill()
	tries := open(t, path, geometry).Slots(0)
	tries.Bind(func() {}, nil)
	for began := shm.Now(); ; {
		if _, err := tries.TryAcquire(stint.Lowest); err == nil {
			break
		}
		if shm.Now()-began > int64(patience) {
			t.Fatal("TryAcquire never gets the slot of a dead process")
		}
	}
}
