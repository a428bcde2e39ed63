package shm

import "github.com/stintgo/stint/shm/internal/pool"

// doorbells tell the watcher that a process has ended which had the region open. They
// prove nothing: numbers of processes are used again, and those of other namespaces
// mean others. A ring too many costs a look, and one that is missing up to a period.
// They belong to the watcher.
type doorbells struct {
	region *Region
	hung   [pool.ParticipantsMax]doorbell // by the place in the table
}

type doorbell struct {
	era      uint64 // of whom, 0: nobody
	takeDown func() // nil if there is none: the sweep has to do
}

// hang sees to it that there is one for everybody who has the region open now.
func (d *doorbells) hang() {
	for i := range d.hung {
		if era, pid := d.region.member.Peer(i); era != d.hung[i].era {
			d.replace(i, era, pid)
		}
	}
}

func (d *doorbells) replace(i int, era uint64, pid int) {
	if down := d.hung[i].takeDown; down != nil {
		down()
	}
	d.hung[i] = doorbell{era: era}
	if era == 0 {
		return
	}
	if down, err := d.region.onExit(pid, d.region.ring); err == nil {
		d.hung[i].takeDown = down // else it is not tried again
	}
}

// takeDown takes all doorbells down.
func (d *doorbells) takeDown() {
	for i := range d.hung {
		if d.hung[i].era != 0 {
			d.replace(i, 0, 0)
		}
	}
}

// ring has the watcher look for slots of the dead.
func (r *Region) ring() {
	r.rung.Store(true)
	r.member.Ring()
}
