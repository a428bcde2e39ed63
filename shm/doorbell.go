package shm

import (
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// doorbellAfter is how long somebody has waited before doorbells are hung up: most
// waits are shorter.
const doorbellAfter = time.Millisecond

// doorbells tell the watcher that a process has ended which owned a slot that
// somebody waits for here. They prove nothing: numbers of processes are used again,
// and those of other namespaces mean others. A ring too many costs a look, and one
// that is missing up to a period. They belong to the watcher.
type doorbells struct {
	region *Region
	due    int64             // when to see who owns the slots
	hung   map[uint64]func() // by the owner; takes the doorbell down
}

func newDoorbells(r *Region) *doorbells {
	return &doorbells{region: r, due: arena.Now() + int64(doorbellAfter), hung: make(map[uint64]func())}
}

// update sees to it that those have a doorbell who own slots now, if it is due, and
// returns how long it is until it will be.
func (d *doorbells) update(rung bool) time.Duration {
	if now := arena.Now(); rung || now >= d.due {
		d.due = now + int64(period)
		d.hang(d.region.owners())
	}
	return time.Duration(d.due - arena.Now())
}

func (d *doorbells) hang(owners map[uint64]int) {
	for owner, takeDown := range d.hung {
		if _, still := owners[owner]; !still {
			takeDown()
			delete(d.hung, owner)
		}
	}
	for owner, pid := range owners {
		if d.hung[owner] != nil {
			continue
		}
		takeDown, err := d.region.onExit(pid, d.region.ring)
		if err != nil {
			takeDown = func() {} // the sweep has to do; nor is it tried again
		}
		d.hung[owner] = takeDown
	}
}

// takeDown takes all doorbells down.
func (d *doorbells) takeDown() { d.hang(nil) }

// ring has the watcher look for slots of the dead.
func (r *Region) ring() {
	r.rung.Store(true)
	r.member.Ring()
}

// owners returns who owns slots of limits for which somebody waits here, and the
// numbers of their processes.
func (r *Region) owners() map[uint64]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[uint64]int)
	if r.closed.Load() {
		return all
	}
	for _, s := range r.limits {
		if s.want.Count > 0 {
			r.member.Owners(s.limit, all)
		}
	}
	return all
}
