package shm

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// claims is where the locks begin that no participant uses.
const claims = 1 << 20

// Claim takes a lock of the region's file that stands for having slot n, and
// reports whether nobody else has it. As it is a lock of the same open file as
// that of the process's life, the kernel ends both at the same time.
func (r *Region) Claim(n int) bool { return r.arena.Lock(claims + n) }

// Unclaim gives it back.
func (r *Region) Unclaim(n int) { r.arena.Unlock(claims + n) }

// SlotOf is the slot that a grant is for.
func SlotOf(grant uint64) int { return int(grant%(1<<slotBits)) - 1 }

// Make takes the lock of whoever opens a region.
func (r *Region) Make() bool { return r.arena.Lock(-1) }

// OpenWithin is Open with another bound to its waiting.
func OpenWithin(name string, geometry Geometry, patience time.Duration) (*Region, error) {
	return openWithin(context.Background(), name, geometry, patience)
}

// NeverSweep keeps the region from taking back what others are granted and do not
// accept in time, as they may not on a busy machine.
func (r *Region) NeverSweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.swept = math.MaxInt64
}

// NeverRing keeps the region from being told that a process has ended.
func (r *Region) NeverRing(why error) {
	r.onExit = func(int, func()) (func(), error) { return nil, why }
}

// Doorbells counts of which processes the region wants to be told that they have
// ended, and of which it was.
func (r *Region) Doorbells() (hung, rung func(pid int) int) {
	var mu sync.Mutex
	var asked, told []int
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
		note(&asked, pid)
		return arena.OnExit(pid, func() {
			ended()
			note(&told, pid)
		})
	}
	return count(&asked), count(&told)
}

// SlowDoorbells makes it take a while to take doorbells down, and returns how many
// there are.
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

// SignAs changes as which process this one is shown.
func (r *Region) SignAs(pid int) { r.member.Sign(pid, "other") }

// Now is the clock of tickets.
func Now() int64 { return arena.Now() }

// Waiting is how many of this process wait for anything of the region.
func (r *Region) Waiting() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.limits {
		n += s.want.Count
	}
	return n
}

// Undisturbed calls a function while the region's goroutine waits, and returns
// how often the process was rung meanwhile.
func (r *Region) Undisturbed(f func()) (rung uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.member.Bell()
	f()
	return r.member.Bell() - before
}

// Watch tells of how many participants the region wants doorbells, and how long it sleeps
// unless it is rung.
func (r *Region) Watch() (doorbells int, pace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bits.OnesCount64(r.watch.bells), time.Duration(r.watch.due - r.watch.waited)
}
