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

// roomEvery is how often a writer that met a full disk tries again.
const roomEvery = 20 * time.Millisecond

// guard keeps errors of writing from Pebble, which ends the process on most of
// them, and reports success for a commit on some. A writer that meets a full disk
// waits for room, and one that cannot open a file for want of descriptors for some.
// One that meets any other error waits for ever, and so does one
// whose sync has failed: the kernel may have dropped what was to be synced, and a
// second sync would find nothing to do and succeed. A call that must not wait so long
// goes through run.
//
// What is held can be left behind, for it changes nothing any more: see retire.
type guard struct {
	fs vfs.FS

	mu      sync.Mutex
	waits   bool   // for room; set while the store is open
	full    error  // why writers wait at present: a full disk, or no descriptors
	waiting int    // of them
	failed  error  // why writers wait for ever
	spared  string // this directory is a copy's, and may fail; "" for none
	retired bool   // nothing changes files any more

	changing sync.WaitGroup // operations; begun with mu, and not after retired is set
	broken   chan struct{}  // closed when failed is set
}

func newGuard(fs vfs.FS) *guard { return &guard{fs: fs, broken: make(chan struct{})} }

// do runs an operation that changes files.
func (g *guard) do(op, path string, run func() error) error {
	if g.spares(path) {
		return run()
	}
	if op == opCreate && strings.HasPrefix(g.fs.PathBase(path), "marker.") {
		// A marker names a file of the directory, and Pebble syncs both at once: a
		// crash could keep the marker without the file, and nothing would open then.
		g.must(opSync, func() error { return syncDir(g.fs, g.fs.PathDir(path)) })
	}
	g.must(op, run)
	return nil
}

// must runs an operation until it has succeeded, or never returns.
func (g *guard) must(op string, run func() error) {
	if err := g.once(run); err != nil {
		g.after(op, err, run)
	}
}

// once runs an operation, or never returns: it is too late.
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

// retire has nothing change files any more, and returns when nothing does. Then the
// directory may be another's, whatever is left of the database in this process: what
// is held in the guard waits there for ever.
func (g *guard) retire(err error) {
	g.fail(err)
	g.mu.Lock()
	g.retired = true
	g.mu.Unlock()
	g.changing.Wait()
}

// after returns after an error when the operation has succeeded, or never. That holds
// while the database is opened as well: its flushes have begun by then, and one that
// fails is tried again at once and without end. A sync that found the disk full is not
// repeated; one whose directory could not be opened is.
func (g *guard) after(op string, err error, run func() error) {
	if (op != opSync && isFull(err) || noDescriptors(err)) && g.waitForRoom(err, run) {
		return
	}
	g.fail(err)
	select {}
}

// waitForRoom repeats an operation until it succeeds. It returns false if it
// fails otherwise, or if no call waits any more.
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

// noDescriptors reports an error of opening a file that is the process's or the
// system's: nothing has been done to the disk.
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

// fail has all writers wait for ever, for the first reason that there was.
func (g *guard) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = err
		close(g.broken)
	}
}

// spare says that a directory, which is none of the store's, and the one that it
// is made in may fail.
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

// patient says whether writers wait for room, or give up for ever.
func (g *guard) patient(waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = waits
}

// state says why nothing can be written at present; nil if it can.
func (g *guard) state() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil && isFull(g.failed):
		return fmt.Errorf("the disk is full; make room, and open the store again: %w", brief(g.failed))
	case g.failed != nil:
		return fmt.Errorf("the disk failed, and what it holds is unknown; look after it, and open the store again: %w",
			brief(g.failed))
	case noDescriptors(g.full):
		return fmt.Errorf("no more files can be opened, and what is to be written waits for that: "+
			"raise the limit on open files (ulimit -n): %w", brief(g.full))
	case g.full != nil:
		return fmt.Errorf("the disk is full, and what is to be written waits for room; make some: %w", brief(g.full))
	}
	return nil
}

// run calls something that writes, and waits until it ends or is held for ever. A
// panic, by which Pebble gives up, is an error.
func (g *guard) run(fn func() error) error {
	select {
	case <-g.broken: // what is held in the middle of something is not to be touched again
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
