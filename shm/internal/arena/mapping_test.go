//go:build linux

package arena_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stintgo/stint/shm/internal/arena"
)

// mapped returns how often this process has mapped a file.
func mapped(t *testing.T, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), path)
}

// Opening a file again returns the memory that is mapped already.
func TestB8_ArenaIsMappedOnce(t *testing.T) {
	path := newPath(t)
	first := open(t, path)
	for i := range uint64(100) {
		a, err := tryOpen(path, layout)
		if err != nil {
			t.Fatal(err)
		}
		a.Words[99] = i
		if err := a.File.Close(); err != nil {
			t.Error(err)
		}
		if got := first.Words[99]; got != i {
			t.Fatalf("the first one reads %d, want %d", got, i)
		}
	}
	if n := mapped(t, path); n != 1 {
		t.Errorf("the file is mapped %d times, want 1", n)
	}
	if n := len(first.Words); n != layout.Words || cap(first.Words) != n {
		t.Errorf("%d words, want %d", n, layout.Words)
	}
}

// Close releases the locks of its arena and of no other, although the mapping stays.
func TestB8_ArenaCloseReleasesItsLocks(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	if !a.Locks.Lock(5) || !b.Locks.Held(5) {
		t.Fatal("a free lock was not taken")
	}
	if err := open(t, path).File.Close(); err != nil {
		t.Error(err)
	}
	if !b.Locks.Held(5) {
		t.Error("the lock was released with another arena")
	}
	if err := a.File.Close(); err != nil {
		t.Error(err)
	}
	if b.Locks.Held(5) {
		t.Error("a closed arena still holds its lock")
	}
	a.Words[99]++ // a late access, which must not fault
}

// A lock stays held if the arena is no longer referenced.
func TestB8_ArenaIsNotGarbageCollected(t *testing.T) {
	path := newPath(t)
	b := open(t, path)
	func() {
		a, err := tryOpen(path, layout)
		if err != nil || !a.Locks.Lock(5) {
			t.Fatalf("a free lock was not taken: %v", err)
		}
	}()
	for range 5 {
		runtime.GC()
	}
	if !b.Locks.Held(5) {
		t.Error("the garbage collector has released the lock")
	}
}

// A file that another process has made anew in place may be longer than the mapping of
// the old one.
func TestB8_ArenaFileGrows(t *testing.T) {
	path := newPath(t)
	open(t, path)
	longer := arena.Layout{Words: 10_000, Geometry: layout.Geometry}
	if err := os.Truncate(path, int64(512+longer.Words)*8); err != nil {
		t.Fatal(err)
	}
	poke(2, uint64(longer.Words))(t, path)
	for range 2 {
		a, err := tryOpen(path, longer)
		if err != nil {
			t.Fatal(err)
		}
		defer a.File.Close()
		if a.Words[9999]++; len(a.Words) != longer.Words {
			t.Errorf("%d words, want %d", len(a.Words), longer.Words)
		}
	}
	if n := mapped(t, path); n != 2 {
		t.Errorf("the file is mapped %d times, want once of each length", n)
	}
}

// Two files may have the same inode number where numbers wrap around.
func TestB8_ArenaSameInodeNumber(t *testing.T) {
	one, path := open(t, newPath(t)), newPath(t)
	other := open(t, path)
	arena.Mistake(one, other)
	open(t, path).Words[99] = 7
	if one.Words[99] != 0 || other.Words[99] != 7 {
		t.Errorf("one file has %d and the other %d, want 0 and 7", one.Words[99], other.Words[99])
	}
}
