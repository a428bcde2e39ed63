package shm

import (
	"errors"

	"github.com/stintgo/stint/shm/internal/pool"
)

// doorbells tell the watcher that a process has ended which had the region open. They
// prove nothing: numbers of processes are used again, and those of other namespaces
// mean others. A ring too many costs a look, and one that is missing up to a period.
// They belong to whoever watches, or while nobody does to the holder of the region's lock.
type doorbells struct {
	region *Region
	hung   [pool.ParticipantsMax]doorbell // by the place in the table
}

type doorbell struct {
	era      uint64 // of whom, 0: nobody
	takeDown func() // nil if there is none: the sweep has to do
}

// everybody is the mask of all participants.
const everybody = 1<<pool.ParticipantsMax - 1

// hang sees to it that there are doorbells of the participants of a mask that have the
// region open now, and of no others. It reports whether some of them are new: their
// processes may have ended before, so the caller has to look once more.
func (d *doorbells) hang(mask uint64) (fresh bool) {
	for i := range d.hung {
		era, pid := uint64(0), 0
		if mask&(1<<i) != 0 {
			era, pid = d.region.member.Peer(i)
		}
		if era != d.hung[i].era {
			fresh = d.replace(i, era, pid) || fresh
		}
	}
	return fresh
}

// replace hangs the doorbell of another participant in a place, none if era is 0. It
// reports whether the process may have ended before. Where the kernel has no doorbells,
// the sweep finds the dead.
func (d *doorbells) replace(i int, era uint64, pid int) (fresh bool) {
	if down := d.hung[i].takeDown; down != nil {
		down()
	}
	d.hung[i] = doorbell{era: era}
	if era == 0 {
		return false
	}
	down, err := d.region.onExit(pid, d.region.ring)
	if err == nil {
		d.hung[i].takeDown = down // else it is not tried again
	}
	return !errors.Is(err, errors.ErrUnsupported)
}

// takeDown takes all doorbells down. There may be none, and d may be nil.
func (d *doorbells) takeDown() {
	if d != nil {
		d.hang(0)
	}
}

// ring has the slots of the dead looked for: by whoever watches, or here if nobody does.
func (r *Region) ring() {
	r.rung.Store(true)
	r.member.Ring()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watch.on && !r.closed.Load() {
		r.sweepLocked()
	}
}
