// Package arena provides memory that the processes of a machine share: a file that all
// of them map, with locks that end with their process, and a way to sleep until a word
// changes. It does not interpret the words.
//
// [Open] returns an [Arena], which has the memory and three parts: the
// open [File], its [Locks], and [Proc], which finds the processes that use the file. The
// rest are functions: a process has one clock, and to sleep takes only the address of a
// word.
//
//   - arena.go: Arena, Layout, the errors
//   - header.go: the header of a file, and what it says about the file's condition
//   - open_linux.go: Open, Remove and Look
//   - make_linux.go: examines a file, and makes it ready or deletes it
//   - mapping_linux.go: what this process has mapped, each file once
//   - private_linux.go: this user's directory, and the check that other users have no access
//   - machine_linux.go: the boot ID and the time namespace
//   - file_linux.go: File: its descriptors, and what happens to them on exec
//   - lock_linux.go: Locks, and the lock of making
//   - proc_linux.go: Proc: which processes have the file open or keep its locks, and which are stopped
//   - exit_linux.go: OnExit, the notice that a process has ended
//   - futex_linux.go: Sleep and Wake
//   - clock_linux.go: Now
//   - arena_other.go: all of it on other systems, where it fails
package arena

import (
	"errors"
	"fmt"
)

// Layout is the size and geometry that a file is made for. Processes with different
// layouts cannot share a file.
type Layout struct {
	Words    int      // the number of 64-bit words
	Geometry []uint64 // meaning of the words, at most geometryMax numbers
}

func (l Layout) validate() error {
	if l.Words < 1 || l.Words > wordsMax || len(l.Geometry) > geometryMax {
		return fmt.Errorf("arena: %d words, %d numbers of geometry", l.Words, len(l.Geometry))
	}
	return nil
}

// Arena is a file of shared memory that this process has open. The methods of its parts
// may be called from any goroutine, except for KeepOnExec of File.
type Arena struct {
	// Words is the memory, which begins on a page. It is the same for all arenas of the
	// file in this process, and stays mapped until the process ends, since a goroutine that
	// is late must not fault. An arena of Look has a copy.
	Words    []uint64
	Geometry []uint64 // that the file was made for

	File  *File
	Locks Locks // of File
	Proc  Proc  // the processes that have the file open, too
}

// Identity tells files apart: it is the same for all arenas of a file.
type Identity struct{ Device, Inode uint64 }

var (
	// ErrMismatch says that the file is of another version, was made for another
	// geometry or by processes that read another clock, or is not a region. The message
	// says which.
	ErrMismatch = errors.New("the region does not fit")

	// ErrInUse says that a lock of the file is held.
	ErrInUse = errors.New("the region is in use")

	// ErrStuck says that another process is opening the file and makes no progress.
	ErrStuck = errors.New("a process that is opening the region makes no progress")

	// ErrNotOurs says that the file or its directory belongs to another user, or
	// that other users have access to it.
	ErrNotOurs = errors.New("the region is not safe from other users")
)
