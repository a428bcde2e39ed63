package filestore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// roomEvery is the interval at which a writer retries on a full disk.
const roomEvery = 20 * time.Millisecond

// guard keeps write errors from Pebble, which ends the process on most of them and
// reports success for a commit on some. On a full disk a writer waits for space, and
// without file descriptors it waits for one. On any other error it blocks for ever. So it
// does if a sync has failed: the kernel may have dropped the data, and a second sync
// would succeed without writing them. Calls that must not block so long go through run.
//
// Blocked writers may be left behind, because they change nothing any more: see retire.
type guard struct {
	fs vfs.FS

	mu      sync.Mutex
	waits   bool   // writers wait for space; set while the store is open
	full    error  // why writers wait now: a full disk, or no descriptors
	waiting int    // the number of these writers
	failed  error  // why writers block for ever
	spared  string // this directory is a copy's, and may fail; "" for none
	retired bool   // no file may be changed any more

	changing sync.WaitGroup // operations in progress; Add is called with mu held, before retired is set
	broken   chan struct{}  // closed when failed is set
}

func newGuard(fs vfs.FS) *guard { return &guard{fs: fs, broken: make(chan struct{})} }

// do runs an operation that changes files.
func (g *guard) do(op, path string, run func() error) error {
	if g.spares(path) {
		return run()
	}
	if op == opCreate && strings.HasPrefix(g.fs.PathBase(path), "marker.") {
		// A marker contains the name of a file of the directory, and Pebble syncs both
		// at once: a crash could keep the marker without the file, and the database
		// could not be opened.
		g.must(opSync, func() error { return syncDir(g.fs, g.fs.PathDir(path)) })
	}
	g.must(op, run)
	return nil
}

// must runs an operation until it succeeds, or blocks for ever.
func (g *guard) must(op string, run func() error) {
	if err := g.once(run); err != nil {
		g.after(op, err, run)
	}
}

// once runs an operation, or blocks for ever if the guard is retired.
func (g *guard) once(run func() error) error {
	g.mu.Lock()
	retired := g.retired
	if !retired {
		g.changing.Add(1)
	}
	g.mu.Unlock()
	if retired {
		select {}
	}
	defer g.changing.Done()
	return run()
}

// retire prevents all further changes of files, and returns when none is in progress.
// After that another process may open the directory, although the rest of the database is
// in this one: its writers block for ever.
func (g *guard) retire(err error) {
	g.fail(err)
	g.mu.Lock()
	g.retired = true
	g.mu.Unlock()
	g.changing.Wait()
}

// after handles the error of an operation: it returns when a repetition has succeeded,
// and blocks for ever otherwise, also while the database is opened, because Pebble
// repeats a failed flush at once and without end. A sync that found the disk full is not
// repeated; a sync whose directory could not be opened is.
func (g *guard) after(op string, err error, run func() error) {
	if (op != opSync && isFull(err) || noDescriptors(err)) && g.waitForRoom(err, run) {
		return
	}
	g.fail(err)
	select {}
}

// waitForRoom repeats an operation until it succeeds. It returns false if the operation
// fails with another error, or writers may not wait any more.
func (g *guard) waitForRoom(err error, run func() error) bool {
	g.enter(err)
	defer g.leave()
	for isFull(err) || noDescriptors(err) {
		if !g.mayWait() {
			return false
		}
		time.Sleep(roomEvery)
		if err = g.once(run); err == nil {
			return true
		}
	}
	g.fail(err)
	return false
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// noDescriptors reports an error of opening a file because the process or the system has
// no descriptors left. It has not touched the disk.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (g *guard) enter(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	g.full = err
}

func (g *guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting--; g.waiting == 0 {
		g.full = nil
	}
}

func (g *guard) mayWait() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waits && g.failed == nil
}

// fail makes all writers block for ever. The first error is kept.
func (g *guard) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = err
		close(g.broken)
	}
}

// spare exempts a directory that is not the store's, and its parent, from the guard:
// their errors are returned.
func (g *guard) spare(dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spared = dir
}

func (g *guard) spares(path string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.spared != "" &&
		(path == g.spared || path == g.fs.PathDir(g.spared) || g.fs.PathDir(path) == g.spared)
}

// patient sets whether writers wait for space. Otherwise they block for ever.
func (g *guard) patient(waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = waits
}

// state returns why nothing can be written now; nil if writes succeed.
func (g *guard) state() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil && isFull(g.failed):
		return fmt.Errorf("the disk is full; make room, and open the store again: %w", brief(g.failed))
	case noDescriptors(g.failed):
		return withoutDescriptors(brief(g.failed))
	case g.failed != nil:
		return fmt.Errorf("the disk failed, and what it holds is unknown; check it, and open the store again: %w",
			brief(g.failed))
	case noDescriptors(g.full):
		return fmt.Errorf("no more files can be opened, and what is to be written waits for that: "+
			"raise the limit on open files (ulimit -n): %w", brief(g.full))
	case g.full != nil:
		return fmt.Errorf("the disk is full, and what is to be written waits for room; make some: %w", brief(g.full))
	}
	return nil
}

// withoutDescriptors returns the error of a store that cannot be opened for lack of them.
func withoutDescriptors(err error) error {
	return fmt.Errorf("no more files can be opened; raise the limit on open files (ulimit -n), and open the store again: "+
		"%w", err)
}

// run calls a function that writes, and returns when it ends or blocks for ever. It
// returns a panic, with which Pebble gives up, as an error.
func (g *guard) run(fn func() error) error {
	select {
	case <-g.broken: // a blocked operation may hold locks of the database
		return g.state()
	default:
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			switch p := recover().(type) {
			case nil:
			case error:
				done <- fmt.Errorf("the database gave up: %w", p)
			default:
				done <- fmt.Errorf("the database gave up: %v", p)
			}
		}()
		done <- fn()
	}()
	select {
	case err := <-done:
		return brief(err)
	case <-g.broken:
		return g.state()
	}
}
