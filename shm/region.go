package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

var (
	// ErrMismatch is returned by [Open] if the region was made for another
	// geometry, or by another version of this package that it cannot share with.
	// It passes when all processes have ended and the file is deleted.
	ErrMismatch = arena.ErrMismatch

	// ErrNotOurs is returned by [Open] if the region belongs to another user, or
	// if other users may use it.
	ErrNotOurs = arena.ErrNotOurs

	// ErrFull is returned by [Open] if [ProcessesMax] processes have the region
	// open.
	ErrFull = errors.New("shm: too many processes share the region")

	// ErrClosed is returned for a region that this process has closed.
	ErrClosed = errors.New("shm: the region is closed")
)

const (
	// ProcessesMax is how many processes can have a region open.
	ProcessesMax = pool.ParticipantsMax

	// SlotsMax is how many slots a limit can have.
	SlotsMax = 1<<slotBits - 1

	// limitsMax is how many limits and mutexes a region can have.
	limitsMax = 256
)

// Geometry is what a region is made for. All processes have to give the same.
type Geometry struct {
	Slots   []int // of each limit, from 1 to SlotsMax
	Mutexes int
}

func (g Geometry) validate() error {
	var problems []error
	if n := len(g.Slots) + max(g.Mutexes, 0); n == 0 || n > limitsMax {
		problems = append(problems, fmt.Errorf("%d limits and mutexes, want 1 to %d", n, limitsMax))
	}
	if g.Mutexes < 0 {
		problems = append(problems, fmt.Errorf("%d mutexes", g.Mutexes))
	}
	for i, n := range g.Slots {
		if n < 1 || n > SlotsMax {
			problems = append(problems, fmt.Errorf("limit %d has %d slots, want 1 to %d", i, n, SlotsMax))
		}
	}
	return errors.Join(problems...)
}

// shape is that of the pool: a mutex is a limit of one slot.
func (g Geometry) shape() pool.Shape {
	limits := slices.Concat(g.Slots, slices.Repeat([]int{1}, g.Mutexes))
	return pool.Shape{Participants: ProcessesMax, Limits: limits}
}

// numbers is the geometry as it is written into the region.
func (g Geometry) numbers() []uint64 {
	all := []uint64{uint64(g.Mutexes)}
	for _, n := range g.Slots {
		all = append(all, uint64(n))
	}
	return all
}

// Region is this process's part in memory that processes share. Its methods may
// be called from any goroutine.
type Region struct {
	arena   *arena.Arena
	pool    *pool.Pool
	member  *pool.Member
	limits  []*Slots // those of mutexes are the last
	mutexes []*Mutex
	closed  atomic.Bool

	// After the lock of a scheduler, never before: schedulers call with theirs.
	mu       sync.Mutex
	swept    int64         // when the dead were last looked for
	watching chan struct{} // closed when the watcher has ended; nil: there is none
}

// Open joins a region, and makes it if nobody has. A name without a slash is that
// of a file in a directory of this user in /dev/shm; any other is the path of a
// file, which is best on a tmpfs. Open waits while another process makes the
// region, which takes microseconds.
//
// It fails with [ErrMismatch], [ErrNotOurs], [ErrFull], [errors.ErrUnsupported],
// what is wrong with the geometry, or that of the file system: a disk without
// room is noticed here and not later.
func Open(name string, geometry Geometry) (*Region, error) {
	r, err := open(name, geometry)
	if err != nil {
		return nil, fmt.Errorf("open shared region: %w", err)
	}
	return r, nil
}

func open(name string, geometry Geometry) (*Region, error) {
	if err := geometry.validate(); err != nil {
		return nil, err
	}
	path, err := pathOf(name)
	if err != nil {
		return nil, err
	}
	shape := geometry.shape()
	a, err := arena.Open(path, arena.Layout{Words: shape.Words(), Geometry: geometry.numbers()})
	if err != nil {
		return nil, err
	}
	r := &Region{arena: a}
	r.pool = pool.New(a.Words(), shape, host{r})
	if r.member, err = r.pool.Join(os.Getpid(), filepath.Base(os.Args[0])); err != nil {
		_ = a.Close()
		return nil, ErrFull
	}
	for i, n := range shape.Limits {
		r.limits = append(r.limits, &Slots{region: r, limit: i, grants: make([]uint64, n)})
	}
	for _, slots := range r.limits[len(geometry.Slots):] {
		r.mutexes = append(r.mutexes, newMutex(slots))
	}
	return r, nil
}

func pathOf(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("%q is not the name of a region", name)
	}
	dir, err := arena.Private()
	return filepath.Join(dir, name), err
}

// Slots returns the slots of a limit, counted from 0 as in the geometry. They are
// for one scheduler of this process: the same are returned every time. Another
// scheduler can have a region of its own, by opening it again.
func (r *Region) Slots(limit int) *Slots { return r.limits[:len(r.limits)-len(r.mutexes)][limit] }

// Close gives back all that this process has of the region. It is to be called
// when nobody holds what came from the region any more; who waits for it, or asks
// later, is refused with [ErrClosed]. It waits for the goroutine of the region,
// and closing twice does nothing.
func (r *Region) Close() error {
	r.mu.Lock()
	if r.closed.Swap(true) {
		r.mu.Unlock()
		return nil
	}
	r.member.Leave()
	watching := r.watching
	var waiting []*Slots
	for _, s := range r.limits {
		if s.want.Count > 0 {
			waiting = append(waiting, s)
		}
	}
	r.mu.Unlock()
	for _, s := range waiting {
		s.notify() // to be told that it is closed
	}
	if watching != nil {
		r.arena.Wake(r.bell())
		<-watching
	}
	return r.arena.Close()
}

func (r *Region) bell() *uint64 { return r.pool.Bell(r.member.Index()) }

// host is what the pool needs of the system.
type host struct{ *Region }

func (h host) Lock(lock int) bool   { return h.arena.Lock(lock) }
func (h host) Unlock(lock int)      { h.arena.Unlock(lock) }
func (h host) Held(lock int) bool   { return h.arena.Held(lock) }
func (h host) Wake(participant int) { h.arena.Wake(h.pool.Bell(participant)) }

// period is how often who waits looks for slots of the dead.
const period = 10 * time.Millisecond

// sweepLocked looks for slots of the dead, and for grants that nobody takes, if
// that was not done lately.
func (r *Region) sweepLocked() {
	if now := arena.Now(); now-r.swept >= int64(period) {
		r.swept = now
		r.member.Sweep()
	}
}

// watchLocked sees to it that there is a watcher.
func (r *Region) watchLocked() {
	if r.watching == nil {
		r.watching = make(chan struct{})
		go r.watch(r.watching)
	}
}

// watch is the one goroutine of the process that sleeps until slots are granted.
// It tells who waits, and ends when nobody has waited for a period.
func (r *Region) watch(done chan<- struct{}) {
	defer close(done)
	for {
		bell := r.member.Bell()
		served, waiting := r.look()
		if !waiting {
			return
		}
		for _, s := range served {
			s.notify()
		}
		r.arena.Sleep(r.bell(), bell, period)
	}
}

// look returns the limits of which this process was granted a slot, and whether
// anybody waits.
func (r *Region) look() (served []*Slots, waiting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return nil, false
	}
	r.sweepLocked()
	for _, s := range r.limits {
		if s.want.Count == 0 {
			continue
		}
		waiting = true
		s.giveBack() // the scheduler has been paused, or so
		if r.member.Check(s.limit) {
			served = append(served, s)
		}
	}
	if !waiting {
		r.watching = nil
	}
	return served, waiting
}
