package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

var (
	// ErrMismatch is returned by [Open] if the region was made for another
	// geometry, by another version of this package that it cannot share with, in
	// another time namespace or under another boot id, and is in use: then the error is
	// [ErrInUse] as well.
	// It passes when those have closed it who have it open. Of a file that is
	// something else, the error is ErrMismatch alone.
	ErrMismatch = arena.ErrMismatch

	// ErrInUse is returned by [Remove] if a process has the region open.
	ErrInUse = arena.ErrInUse

	// ErrStuck is returned by [Open] and [Remove] if a process that is opening or
	// removing the region has not gone on for 10 seconds: it is stopped. [OpenContext]
	// returns it also if the context ends before.
	ErrStuck = arena.ErrStuck

	// ErrNotOurs is returned by [Open], [Inspect] and [Remove] if the region belongs to
	// another user, or if other users may use it; and by them and [List] if that is so
	// of this user's directory in /dev/shm.
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

	// SlotsMax is how many slots a limit can have. Those who wait, and those who open
	// the region, look through all of them: from some 10,000 on that takes time.
	SlotsMax = 1<<slotBits - 1

	// limitsMax is how many limits, mutexes and rates a region can have.
	limitsMax = 240
)

// Region is this process's part in memory that processes share. Its methods may
// be called from any goroutine.
type Region struct {
	arena   *arena.Arena
	pool    *pool.Pool
	member  *pool.Member
	limits  []*Slots // those of mutexes are the last
	mutexes []*Mutex
	buckets []*Bucket
	closed  atomic.Bool
	rung    atomic.Bool // somebody may have died
	onExit  func(pid int, ended func()) (stop func(), err error)

	// After the lock of a scheduler, never before: schedulers call with theirs.
	mu    sync.Mutex
	watch watch
}

// patienceMax is how long whoever opens or removes a region waits for those who are
// doing so. They take microseconds.
const patienceMax = 10 * time.Second

// Open joins a region, and makes it if nobody has. A name without a slash is that
// of a file in a directory of this user in /dev/shm; any other is the path of a
// file, which is best on a tmpfs. One that does not fit and that no living process
// has open is deleted and made anew: what the dead left in it, as the marks of
// abandoned mutexes, is gone then.
//
// A file that is something else stays as it is, and the error is [ErrMismatch]. But an
// empty one is taken, as that of a process that died before it had written anything,
// and so is one that begins with zeros if it is as long as the region is to be, as one
// whose header was lost with the power of the machine.
//
// Open waits while another process opens or removes the region. That takes
// microseconds, unless the process is stopped meanwhile: after 10 seconds Open fails
// with [ErrStuck]. [OpenContext] gives up earlier. It does not wait for a place if
// [ProcessesMax] processes have the region open, nor for the processes that have it
// open with another geometry.
//
// It fails with [ErrMismatch], [ErrNotOurs], [ErrFull], [ErrStuck],
// [errors.ErrUnsupported], what is wrong with the geometry, or that of the file
// system: a disk without room is noticed here and not later. Names without a slash
// that are blank, or have control characters, are refused.
func Open(name string, geometry Geometry) (*Region, error) {
	return openWithin(context.Background(), name, geometry, patienceMax)
}

// OpenContext is [Open] that waits no longer than until ctx ends. The error is
// [ErrStuck] then, and [context.Cause] of ctx: [errors.Is] finds both. Where nothing
// is to be waited for it opens the region also if ctx has ended. What is opened does
// not depend on ctx.
func OpenContext(ctx context.Context, name string, geometry Geometry) (*Region, error) {
	return openWithin(ctx, name, geometry, patienceMax)
}

func openWithin(ctx context.Context, name string, geometry Geometry, patience time.Duration) (*Region, error) {
	r, err := open(ctx, name, geometry, patience)
	if err != nil {
		return nil, fmt.Errorf("open shared region: %w", err)
	}
	return r, nil
}

func open(ctx context.Context, name string, geometry Geometry, patience time.Duration) (*Region, error) {
	if err := geometry.validate(); err != nil {
		return nil, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	path, err := pathOf(name, arena.MakePrivate)
	if err != nil {
		return nil, err
	}
	shape := geometry.shape()
	r := &Region{onExit: arena.OnExit}
	layout := arena.Layout{Words: shape.Words(), Geometry: geometry.numbers()}
	_, err = arena.Open(ctx, path, layout, patience, func(a *arena.Arena) error { return r.join(a, shape) })
	if err != nil {
		return nil, refusal(err, name, path, geometry)
	}
	for i, n := range shape.Limits {
		r.limits = append(r.limits, newSlots(r, i, n))
	}
	for _, slots := range r.limits[len(geometry.Slots):] {
		r.mutexes = append(r.mutexes, newMutex(slots))
	}
	for i, rate := range geometry.Rates {
		r.buckets = append(r.buckets, newBucket(r, i, rate))
	}
	return r, nil
}

// join takes part in the region, while nobody else joins.
func (r *Region) join(a *arena.Arena, shape pool.Shape) (err error) {
	r.arena = a
	r.pool = pool.New(a.Words(), shape, host{r})
	if r.member, err = r.pool.Join(os.Getpid(), filepath.Base(os.Args[0])); err != nil {
		return ErrFull
	}
	return nil
}

// refusal says why a region was not opened, and what can be done.
func refusal(err error, name, path string, asked Geometry) error {
	if errors.Is(err, ErrFull) {
		return fmt.Errorf("%w: %d have it open, as many as can; `stint shm ls %s` lists them", err, ProcessesMax, name)
	}
	if err = named(err, path); !errors.Is(err, ErrInUse) || !errors.Is(err, ErrMismatch) {
		return err
	}
	info, unknown := inspect(path)
	if unknown != nil {
		return err // it is not the geometry that differs
	}
	return fmt.Errorf("%w with %v; asked for %v: open it with the same, or under another name", err, info.Geometry, asked)
}

// checkName refuses names that tables and terminals cannot show.
func checkName(name string) error {
	switch {
	case strings.ContainsRune(name, '/'):
		return nil
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %q has control characters: take others", name)
	case name != "" && strings.TrimSpace(name) == "":
		return fmt.Errorf("the name %q has blanks alone: take letters", name)
	}
	return nil
}

// pathOf is the path of a region's file.
func pathOf(name string, private func() (dir string, err error)) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	switch name {
	case "":
		return "", errors.New("the name of the region is empty: give one, as in thumbnails")
	case ".", "..":
		return "", fmt.Errorf("%q is a directory and not the name of a region: give one, as in thumbnails", name)
	}
	dir, err := private()
	return filepath.Join(dir, name), err
}

// Slots returns the slots of a limit, counted from 0 as in the geometry. They are
// for one scheduler of this process: the same are returned every time. Another
// scheduler can have a region of its own, by opening it again: a second [stint.New]
// with these panics, and so does Slots if the geometry has no such limit.
func (r *Region) Slots(limit int) *Slots {
	all := r.limits[:len(r.limits)-len(r.mutexes)]
	mustHave("limit", limit, len(all))
	return all[limit]
}

// mustHave panics if a geometry has no such limit, mutex or rate.
func mustHave(what string, i, n int) {
	if i < 0 || i >= n {
		panic(fmt.Sprintf("shm: no %s %d: the region has %d, counted from 0", what, i, n))
	}
}

// KeepOnExec prepares that this process turns into another program, by exec(2):
// what it holds of the region stays held until that program has ended, and all
// processes that inherit its open files, in whatever way they end. Then it comes
// back like that of any process that has died. A program that closes all files that
// it does not know gives it back at once.
//
// From now on the process is shown under the given name, of which 32 bytes count.
// It should wait for nothing of the region when it turns into the other program. If
// it does not, since exec failed, it goes on with the region as before; but programs
// that it starts from now on keep what it holds as well. The error is [ErrClosed], or
// the system's; then nothing has changed.
func (r *Region) KeepOnExec(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return ErrClosed
	}
	if err := r.arena.KeepOnExec(); err != nil {
		return err
	}
	r.member.Sign(os.Getpid(), name)
	return nil
}

// File returns a descriptor of the open file by which the system knows that this
// process lives. A process that is given it, as one that ends what this one has left
// running, keeps what this one holds until it has closed it or ended as well. It is
// the caller's to close, before the region or after it, and says nothing of the region
// while that is open. The error is [ErrClosed], or the system's.
func (r *Region) File() (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return nil, ErrClosed
	}
	return r.arena.File()
}

// Close gives back all that this process has of the region. It is to be called
// when nobody holds what came from the region any more; who waits for it, or asks
// later, is refused with [ErrClosed]. It waits for the goroutine of the region,
// and closing twice does nothing. The memory stays mapped until the process ends, for
// goroutines that are late, and is used again if the process opens the region again.
func (r *Region) Close() error {
	r.mu.Lock()
	if r.closed.Swap(true) {
		r.mu.Unlock()
		return nil
	}
	r.member.Leave()
	bound := r.boundLocked()
	r.mu.Unlock()
	for _, notify := range bound {
		notify() // who waits, or is about to, is told that the region is closed
	}
	r.member.Ring()
	r.watch.running.Wait()
	r.mu.Lock()
	down := r.retireLocked()
	r.mu.Unlock()
	down.takeDown() // what a caller has left
	return r.arena.Close()
}

// boundLocked returns how to tell all who may wait.
func (r *Region) boundLocked() (all []func()) {
	for _, s := range r.limits {
		if s.notify != nil {
			all = append(all, s.notify)
		}
	}
	for _, b := range r.buckets {
		if b.notify != nil {
			all = append(all, b.notify)
		}
	}
	return all
}

func (r *Region) bell() *uint64 { return r.pool.Bell(r.member.Index()) }

// host is what the pool needs of the system.
type host struct{ *Region }

func (h host) Lock(lock int) bool { return h.arena.Lock(lock) }
func (h host) Unlock(lock int)    { h.arena.Unlock(lock) }
func (h host) Held(lock int) bool { return h.arena.Held(lock) }
func (h host) Stopped(participant int) bool {
	pid := h.pool.PID(participant)
	return pid != os.Getpid() && h.arena.Stopped(pid)
}
func (h host) Wake(participant int) { h.arena.Wake(h.pool.Bell(participant)) }
