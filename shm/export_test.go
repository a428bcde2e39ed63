package shm

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm/internal/arena"
)

// claims is the index of the first lock that no participant uses.
const claims = 1 << 20

// Claim takes a lock of the region's file that represents slot n, and reports whether no
// other process holds it. It is a lock of the same open file as the process's life lock,
// so the kernel releases both at the same time.
func (r *Region) Claim(n int) bool { return r.arena.Locks.Lock(claims + n) }

// Unclaim releases the lock that Claim has taken.
func (r *Region) Unclaim(n int) { r.arena.Locks.Unlock(claims + n) }

// SlotOf returns the index of the slot of a grant.
func SlotOf(grant uint64) int { return int(grant%(1<<slotBits)) - 1 }

// Make takes the lock that a process holds while it opens a region.
func (r *Region) Make() bool { return r.arena.Locks.Lock(-1) }

// OpenWithin is Open with another limit to its waiting.
func OpenWithin(name string, geometry Geometry, patience time.Duration) (*Region, error) {
	return openWithin(context.Background(), name, geometry, patience)
}

// NeverSweep disables the sweeps of the region, which would take back grants that are not
// accepted in time, as may happen on a busy machine.
func (r *Region) NeverSweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.swept = math.MaxInt64
}

// NeverRing makes the region's doorbells fail with why.
func (r *Region) NeverRing(why error) {
	r.onExit = func(int, func()) (func(), error) { return nil, why }
}

// Doorbells counts the doorbells that the region installs from now on, and those that
// ring, by PID.
func (r *Region) Doorbells() (installed, rung func(pid int) int) {
	var mu sync.Mutex
	var installs, rings []int
	count := func(all *[]int) func(int) int {
		return func(pid int) (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range *all {
				if p == pid {
					n++
				}
			}
			return n
		}
	}
	note := func(all *[]int, pid int) {
		mu.Lock()
		defer mu.Unlock()
		*all = append(*all, pid)
	}
	r.onExit = func(pid int, ended func()) (func(), error) {
		note(&installs, pid)
		return arena.OnExit(pid, func() {
			ended()
			note(&rings, pid)
		})
	}
	return count(&installs), count(&rings)
}

// SlowDoorbells makes the removal of a doorbell take 3 ms, and returns the number of
// installed doorbells.
func (r *Region) SlowDoorbells() *atomic.Int32 {
	var up atomic.Int32
	r.onExit = func(pid int, ended func()) (func(), error) {
		stop, err := arena.OnExit(pid, ended)
		if err == nil {
			up.Add(1)
		}
		return func() {
			stop()
			for began := Now(); Now()-began < int64(3*time.Millisecond); {
				runtime.Gosched()
			}
			up.Add(-1)
		}, err
	}
	return &up
}

// poolStep is the hook of package pool that is called before each access to shared memory, except for
// those of a free slot that no process waits for.
//
//go:linkname poolStep github.com/stintgo/stint/shm/internal/pool.step
var poolStep func(word *uint64)

// LockWhileClosing tries to lock a mutex while Close begins: it has marked the region as closed after
// the call has checked that, and has released nothing yet.
func (r *Region) LockWhileClosing(i int) error {
	s := r.mutexes[i].slots
	s.want.Count = 1 // so that a free slot is taken with a step, too
	poolStep = func(*uint64) { r.closed.Store(true) }
	defer func() {
		s.want.Count, poolStep = 0, nil
		r.closed.Store(false)
	}()
	_, err := s.TryAcquire(stint.Normal)
	return err
}

// SignAs changes the PID under which this process is listed.
func (r *Region) SignAs(pid int) { r.member.Sign(pid, "other") }

// Now returns the time of the clock of tickets, in ns.
func Now() int64 { return arena.Now() }

// Waiting returns the number of waiters for slots of the region in this process.
func (r *Region) Waiting() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.limits {
		n += s.want.Count
	}
	return n
}

// Undisturbed calls f while the watcher waits for the region's lock, and returns how
// often the process was rung meanwhile.
func (r *Region) Undisturbed(f func()) (rung uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.member.Bell()
	f()
	return r.member.Bell() - before
}

// Watch returns the number of participants that the watcher wants doorbells of, and how
// long it sleeps without a ring.
func (r *Region) Watch() (doorbells int, pace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bits.OnesCount64(r.watch.bellMask), time.Duration(r.watch.due - r.watch.lastWaiting)
}
