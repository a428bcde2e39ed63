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
	// ErrMismatch is returned by [Open] if the region is in use and was made for another
	// geometry, by an incompatible version of this package, in another time namespace or
	// under another boot id; the error is [ErrInUse] as well. Open succeeds once all
	// processes that have the region open have closed it. If the file is not a region,
	// the error is ErrMismatch alone.
	ErrMismatch = arena.ErrMismatch

	// ErrInUse is returned by [Remove] if a process has the region open.
	ErrInUse = arena.ErrInUse

	// ErrStuck is returned by [Open] and [Remove] if another process that is opening or
	// removing the region has made no progress for 10 seconds: it is stopped.
	// [OpenContext] also returns it if the context ends earlier.
	ErrStuck = arena.ErrStuck

	// ErrNotOurs is returned by [Open], [Inspect] and [Remove] if the region belongs to
	// another user, or if other users may access it; they and [List] also return it if
	// that is true of this user's directory in /dev/shm.
	ErrNotOurs = arena.ErrNotOurs

	// ErrFull is returned by [Open] if [ProcessesMax] processes have the region
	// open.
	ErrFull = errors.New("shm: too many processes share the region")

	// ErrClosed is returned for a region that this process has closed.
	ErrClosed = errors.New("shm: the region is closed")
)

const (
	// ProcessesMax is the maximum number of processes that can have a region open.
	ProcessesMax = pool.ParticipantsMax

	// SlotsMax is the maximum number of slots of a limit. Waiting for a slot and opening
	// a region scan all slots, which takes a noticeable time from about 10,000 slots on.
	SlotsMax = 1<<slotBits - 1

	// limitsMax is the maximum number of limits, mutexes and rates of a region together.
	limitsMax = 240
)

// Region is this process's access to memory that processes share. Its methods may
// be called from any goroutine.
type Region struct {
	arena   *arena.Arena
	pool    *pool.Pool
	member  *pool.Member
	limits  []*Slots // first those of Geometry.Slots, then one per mutex
	mutexes []*Mutex
	buckets []*Bucket
	closed  atomic.Bool
	rung    atomic.Bool // another process may have died
	onExit  func(pid int, ended func()) (stop func(), err error)

	// Locked after a scheduler's lock, never before: schedulers call with theirs held.
	mu    sync.Mutex
	watch watch
}

// patienceMax is how long Open and Remove wait for other processes that open or remove
// the region. These normally take microseconds.
const patienceMax = 10 * time.Second

// Open joins a region, and makes it if it does not exist. A name without a slash names a
// file in this user's directory in /dev/shm; any other name is the path of a file, which
// should be on a tmpfs. If the file does not fit, for example because its geometry
// differs, and no living process has the region open, it is deleted and made anew; what
// dead processes left in it, such as the marks of abandoned mutexes, is lost.
//
// A file that is not a region is left as it is, and the error is [ErrMismatch]. There are
// two exceptions: an empty file is made a region, because a process that died before it
// had written anything leaves one; and so is a file of the region's size that begins with
// zeros, because a power failure may lose the header.
//
// Open waits while another process opens or removes the region. That takes
// microseconds, unless the process is stopped meanwhile: after 10 seconds Open fails
// with [ErrStuck]. [OpenContext] can give up earlier. Open does not wait if
// [ProcessesMax] processes have the region open, nor for the processes that have it
// open with another geometry.
//
// It fails with [ErrMismatch], [ErrNotOurs], [ErrFull], [ErrStuck],
// [errors.ErrUnsupported], a description of what is wrong with the geometry, or an error
// of the file system: a full disk is detected here and not later. Names without a slash
// that are blank or contain control characters are refused.
func Open(name string, geometry Geometry) (*Region, error) {
	return openWithin(context.Background(), name, geometry, patienceMax)
}

// OpenContext is [Open], but waits at most until ctx ends. The error is then
// [ErrStuck] and [context.Cause] of ctx: [errors.Is] finds both. If there is nothing to
// wait for, it opens the region even if ctx has ended. The open region does not depend on
// ctx.
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

// join adds this process to the region. The caller must hold the file's lock for opening.
func (r *Region) join(a *arena.Arena, shape pool.Shape) (err error) {
	r.arena = a
	r.pool = poolOf(a, shape)
	if r.member, err = r.pool.Join(os.Getpid(), filepath.Base(os.Args[0])); err != nil {
		return ErrFull
	}
	return nil
}

// refusal adds to the error of Open the reason and what to do.
func refusal(err error, name, path string, asked Geometry) error {
	if errors.Is(err, ErrFull) {
		return fmt.Errorf("%w: %d have it open, the maximum; `stint shm ls %s` lists them", err, ProcessesMax, name)
	}
	if err = named(err, path); !errors.Is(err, ErrInUse) || !errors.Is(err, ErrMismatch) {
		return err
	}
	info, unknown := inspect(path)
	if unknown != nil {
		return err // the difference is not in the geometry
	}
	return fmt.Errorf("%w with %v; asked for %v: open it with the same, or under another name", err, info.Geometry, asked)
}

// checkName refuses names that tables and terminals cannot display.
func checkName(name string) error {
	switch {
	case strings.ContainsRune(name, '/'):
		return nil
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %q has control characters: remove them", name)
	case name != "" && strings.TrimSpace(name) == "":
		return fmt.Errorf("the name %q is blank: use letters", name)
	}
	return nil
}

// pathOf returns the path of a region's file.
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

// Slots returns the slots of a limit, counted from 0 as in the geometry. It panics if the
// geometry has no such limit. It always returns the same slots, which are for one
// scheduler of this process: a second [stint.New] with them panics. For another
// scheduler, open the region again.
func (r *Region) Slots(limit int) *Slots {
	all := r.limits[:len(r.limits)-len(r.mutexes)]
	mustHave("limit", limit, len(all))
	return all[limit]
}

// mustHave panics if the geometry has no such limit, mutex or rate.
func mustHave(what string, i, n int) {
	if i < 0 || i >= n {
		panic(fmt.Sprintf("shm: no %s %d: the region has %d, counted from 0", what, i, n))
	}
}

// KeepOnExec prepares this process to execute another program with exec(2): what it holds
// of the region stays held until that program, and all processes that inherit its open
// files, have ended, in whatever way. Then it is recovered as from any process that has
// died. If the program closes all files that it does not know, it is recovered at once.
//
// From now on the process is listed under the given name, of which the first 32 bytes are
// used. It should not wait for anything of the region when it executes the program. If
// exec fails, the process can go on using the region; but programs that it starts from
// now on also keep what it holds. The error is [ErrClosed], or the system's; then nothing
// has changed.
func (r *Region) KeepOnExec(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return ErrClosed
	}
	if err := r.arena.File.KeepOnExec(); err != nil {
		return err
	}
	r.member.Sign(os.Getpid(), name)
	return nil
}

// File returns a descriptor of the open file whose lock marks this process as alive. A
// process that inherits the descriptor, for example to clean up after this one, keeps
// what this process holds until it has closed the descriptor or ended too. The caller
// must close it, before or after the region; closing it releases nothing while the region
// is open. The error is [ErrClosed], or the system's.
func (r *Region) File() (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return nil, ErrClosed
	}
	return r.arena.File.Dup()
}

// Close releases everything that this process holds of the region. It must be called
// after the last use of its slots, buckets and mutexes; pending and later calls fail with
// [ErrClosed]. It waits for the goroutine of the region, and closing twice does nothing.
// The memory stays mapped until the process ends, for goroutines that are late, and is
// used again if the process opens the region again.
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
		notify() // waiters, present and imminent, then find the region closed
	}
	r.member.Ring()
	r.watch.running.Wait()
	r.mu.Lock()
	down := r.retireLocked()
	r.mu.Unlock()
	down.stop() // doorbells that a caller has left
	return r.arena.File.Close()
}

// boundLocked returns the functions that notify all schedulers and limiters of the
// region.
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

// poolOf returns the pool in the memory of an arena.
func poolOf(a *arena.Arena, shape pool.Shape) *pool.Pool {
	h := &host{Locks: a.Locks, proc: a.Proc}
	h.pool = pool.New(a.Words, shape, h)
	return h.pool
}

// host is the system as the pool of an arena uses it; it implements [pool.Host].
type host struct {
	arena.Locks
	proc arena.Proc
	pool *pool.Pool
}

func (h *host) Stopped(participant int) bool {
	pid := h.pool.PID(participant)
	return pid != os.Getpid() && h.proc.Stopped(pid)
}

func (h *host) Wake(bell *uint64) { arena.Wake(bell) }
