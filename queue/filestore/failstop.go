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

// retryEvery is the interval at which a writer retries on a full disk.
const retryEvery = 20 * time.Millisecond

// failStop keeps write errors from Pebble, which ends the process on most of them and
// reports success for a commit on some. On a full disk a writer waits for space, and
// without file descriptors it waits for one. On any other error the store is fail-stop:
// the writer blocks for ever. A failed sync is such an error: the kernel may have dropped
// the data, and a second sync would succeed without writing them. Calls that must not
// block so long go through run.
//
// Blocked writers may be left behind, because they change nothing any more: see retire.
type failStop struct {
	fs vfs.FS

	mu       sync.Mutex
	waits    bool   // whether writers wait for space: while the store is open
	full     error  // why writers wait now: a full disk, or no descriptors
	waiting  int    // the number of these writers
	failed   error  // why writers block for ever
	exempted string // the directory of a copy, in which operations may fail; "" for none
	retired  bool   // no file may be changed any more

	changing sync.WaitGroup // operations in progress; Add is called with mu held, before retired is set
	broken   chan struct{}  // closed when failed is set
}

func newFailStop(fs vfs.FS) *failStop { return &failStop{fs: fs, broken: make(chan struct{})} }

// do runs an operation that changes files.
func (f *failStop) do(op, path string, run func() error) error {
	if f.exempts(path) {
		return run()
	}
	if op == opCreate && strings.HasPrefix(f.fs.PathBase(path), "marker.") {
		// A marker contains the name of a file of the directory, and Pebble syncs both
		// at once: a crash could keep the marker without the file, and the database
		// could not be opened.
		f.must(opSync, func() error { return syncDir(f.fs, f.fs.PathDir(path)) })
	}
	f.must(op, run)
	return nil
}

// must runs an operation until it succeeds, or blocks for ever.
func (f *failStop) must(op string, run func() error) {
	if err := f.once(run); err != nil {
		f.handle(op, err, run)
	}
}

// once runs an operation, or blocks for ever if no file may be changed any more.
func (f *failStop) once(run func() error) error {
	f.mu.Lock()
	retired := f.retired
	if !retired {
		f.changing.Add(1)
	}
	f.mu.Unlock()
	if retired {
		select {}
	}
	defer f.changing.Done()
	return run()
}

// retire prevents all further changes of files, and returns when none is in progress.
// After that another process may open the directory, although the rest of the database is
// in this one: its writers block for ever.
func (f *failStop) retire(err error) {
	f.fail(err)
	f.mu.Lock()
	f.retired = true
	f.mu.Unlock()
	f.changing.Wait()
}

// handle handles the error of an operation: it returns when a repetition has succeeded,
// and blocks for ever otherwise, also while the database is opened, because Pebble
// repeats a failed flush at once and without end. A sync that found the disk full is not
// repeated; a sync whose directory could not be opened is.
func (f *failStop) handle(op string, err error, run func() error) {
	if (op != opSync && isFull(err) || noDescriptors(err)) && f.waitForRoom(err, run) {
		return
	}
	f.fail(err)
	select {}
}

// waitForRoom repeats an operation until it succeeds. It returns false if the operation
// fails with another error, or writers may not wait any more.
func (f *failStop) waitForRoom(err error, run func() error) bool {
	f.enter(err)
	defer f.leave()
	for isFull(err) || noDescriptors(err) {
		if !f.mayWait() {
			return false
		}
		time.Sleep(retryEvery)
		if err = f.once(run); err == nil {
			return true
		}
	}
	f.fail(err)
	return false
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// noDescriptors reports an error of opening a file because the process or the system has
// no descriptors left. It has not touched the disk.
func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (f *failStop) enter(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	f.full = err
}

func (f *failStop) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.full = nil
	}
}

func (f *failStop) mayWait() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits && f.failed == nil
}

// fail makes all writers block for ever. The first error is kept.
func (f *failStop) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
		close(f.broken)
	}
}

// exempt excludes a directory that is not the store's, and its parent: their errors are
// returned. "" ends the exemption.
func (f *failStop) exempt(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exempted = dir
}

func (f *failStop) exempts(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.exempted != "" &&
		(path == f.exempted || path == f.fs.PathDir(f.exempted) || f.fs.PathDir(path) == f.exempted)
}

// setWaits sets whether writers wait for space. Otherwise they block for ever.
func (f *failStop) setWaits(waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = waits
}

// state returns why nothing can be written now; nil if writes succeed.
func (f *failStop) state() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.failed != nil && isFull(f.failed):
		return fmt.Errorf("the disk is full; make room, and open the store again: %w", brief(f.failed))
	case noDescriptors(f.failed):
		return withoutDescriptors(brief(f.failed))
	case f.failed != nil:
		return fmt.Errorf("the disk failed, and what it holds is unknown; check it, and open the store again: %w",
			brief(f.failed))
	case noDescriptors(f.full):
		return fmt.Errorf("no more files can be opened, and what is to be written waits for that: "+
			"raise the limit on open files (ulimit -n): %w", brief(f.full))
	case f.full != nil:
		return fmt.Errorf("the disk is full, and what is to be written waits for room; make some: %w", brief(f.full))
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
func (f *failStop) run(fn func() error) error {
	select {
	case <-f.broken: // a blocked operation may hold locks of the database
		return f.state()
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
	case <-f.broken:
		return f.state()
	}
}
