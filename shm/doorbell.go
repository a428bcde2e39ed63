package shm

import (
	"errors"

	"github.com/stintgo/stint/shm/internal/pool"
)

// doorbells notify the watcher when another process that has the region open ends. A ring
// is only a hint: PIDs are reused, and a PID of another PID namespace may belong to
// another process. A false ring costs one look; a missing one delays recovery by up to a
// period. The watcher owns the doorbells; while there is no watcher, the holder of the
// region's lock does.
type doorbells struct {
	region *Region
	bells  [pool.ParticipantsMax]doorbell // by index in the table
}

type doorbell struct {
	generation uint64 // of the participant, 0: none
	stop       func() // nil if there is no exit notification: only the sweep finds the death
}

// allParticipants is the mask of all participants.
const allParticipants = 1<<pool.ParticipantsMax - 1

// update makes the doorbells those of the participants in mask that have the region open
// now. It reports whether some of them are new: their processes may have ended before, so
// the caller must look for dead processes once more.
func (d *doorbells) update(mask uint64) (fresh bool) {
	for i := range d.bells {
		generation, pid := uint64(0), 0
		if mask&(1<<i) != 0 {
			generation, pid = d.region.member.Peer(i)
		}
		if generation != d.bells[i].generation {
			fresh = d.replace(i, generation, pid) || fresh
		}
	}
	return fresh
}

// replace installs the doorbell of another participant at index i, or none if generation
// is 0. It reports whether the process may have ended before. If the kernel does not
// support exit notification, the sweep finds the dead.
func (d *doorbells) replace(i int, generation uint64, pid int) (fresh bool) {
	if down := d.bells[i].stop; down != nil {
		down()
	}
	d.bells[i] = doorbell{generation: generation}
	if generation == 0 {
		return false
	}
	down, err := d.region.onExit(pid, d.region.ring)
	if err == nil {
		d.bells[i].stop = down // after an error it is not tried again
	}
	return !errors.Is(err, errors.ErrUnsupported)
}

// stop removes all doorbells. d may be nil.
func (d *doorbells) stop() {
	if d != nil {
		d.update(0)
	}
}

// ring makes the watcher look for slots of the dead, or looks itself if there is no
// watcher.
func (r *Region) ring() {
	r.rung.Store(true)
	r.member.Ring()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.watch.on && !r.closed.Load() {
		r.sweepLocked()
	}
}
