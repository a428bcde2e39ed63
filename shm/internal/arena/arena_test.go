//go:build linux

package arena_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/shm/internal/arena"
)

var layout = arena.Layout{Words: 100, Geometry: []uint64{4, 2}}

// patience is the timeout of these tests, for very busy machines.
const patience = time.Minute

func tryOpen(path string, layout arena.Layout) (*arena.Arena, error) {
	return arena.Open(context.Background(), path, layout, patience, func(*arena.Arena) error { return nil })
}

func open(t *testing.T, path string) *arena.Arena {
	t.Helper()
	a, err := tryOpen(path, layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.File.Close() })
	return a
}

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "region")
}

func TestB8_ArenaIsShared(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	if n := len(a.Words); n != layout.Words {
		t.Fatalf("%d words, want %d", n, layout.Words)
	}
	for i, w := range b.Words {
		if w != 0 {
			t.Fatalf("word %d of a new arena is %d", i, w)
		}
	}
	a.Words[99] = 7
	if got := b.Words[99]; got != 7 {
		t.Errorf("the other one reads %d, want 7", got)
	}
	if a.File.Identity != b.File.Identity || a.File.Identity == open(t, newPath(t)).File.Identity {
		t.Error("identities do not distinguish files")
	}
}

// Many open the file for the first time at once: none overwrites what another has
// written.
func TestB8_ArenaIsMadeOnce(t *testing.T) {
	path := newPath(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { atomic.AddUint64(&open(t, path).Words[0], 1) })
	}
	all.Wait()
	if n := open(t, path).Words[0]; n != 16 {
		t.Errorf("%d were counted, want 16", n)
	}
}

// wrong are files that do not fit, and how to make them from one that does.
var wrong = []struct {
	name   string
	layout arena.Layout
	change func(t *testing.T, path string)
	says   string
}{
	{"a number of the geometry", arena.Layout{Words: 100, Geometry: []uint64{4, 3}}, asIs, "made for another geometry"},
	{"a geometry that is shorter", arena.Layout{Words: 100, Geometry: []uint64{4}}, asIs, "made for another geometry"},
	{"more words", arena.Layout{Words: 101, Geometry: []uint64{4, 2}}, asIs, "101"},
	{"another version", layout, poke(1, 99), "99"},
	{"another clock", layout, poke(5, 4026531999), "time namespace 4026531999"},
	{"another boot", layout, poke(3, 1), "another boot id"},
	{"a geometry that is not there", layout, poke(6, 1<<40), "damaged"},
	{"words that are not there", layout, poke(2, 1<<60), "damaged"},
	{"no magic", layout, poke(0, 0), "damaged"},
	{"a file that was cut off", layout, cutOff, "4104"},
}

func asIs(*testing.T, string) {}

// poke changes a word of the header.
func poke(word int64, value uint64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		for i, b := range binary.NativeEndian.AppendUint64(nil, value) {
			overwrite(t, path, word*8+int64(i), b)
		}
	}
}

func cutOff(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 4096+8); err != nil {
		t.Fatal(err)
	}
}

func TestB8_ArenaMismatch(t *testing.T) {
	for _, w := range wrong {
		t.Run(w.name, func(t *testing.T) {
			path := newPath(t)
			a := open(t, path)
			if !a.Locks.Lock(63) {
				t.Fatal("a free lock was refused")
			}
			a.Words[0] = 7
			w.change(t, path)
			_, err := tryOpen(path, w.layout)
			if !errors.Is(err, arena.ErrMismatch) || !errors.Is(err, arena.ErrInUse) || !strings.Contains(err.Error(), w.says) {
				t.Errorf("opened: %v, want a mismatch that names %s", err, w.says)
			}
			a.Locks.Unlock(63)
			b, err := tryOpen(path, w.layout)
			if err != nil || len(b.Words) != w.layout.Words || b.Words[0] != 0 {
				t.Fatalf("the file is not in use and was not made anew: %v", err)
			}
			b.File.Close()
		})
	}
}

// Memory that late goroutines have mapped stays as it is when the file is made anew.
func TestB8_ArenaMemoryOutlivesTheFile(t *testing.T) {
	path := newPath(t)
	words := open(t, path).Words
	words[99] = 7
	b, err := tryOpen(path, arena.Layout{Words: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.File.Close()
	if words[99]++; words[99] != 8 || b.Words[0] != 0 {
		t.Errorf("the old file has %d, want 8, the new one %d, want 0", words[99], b.Words[0])
	}
}

// Making, joining and removing exclude each other.
func TestB8_ArenaMakingIsExclusive(t *testing.T) {
	path := newPath(t)
	var inside, most, joined atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a, err := arena.Open(t.Context(), path, layout, patience, func(a *arena.Arena) error {
				most.Store(max(most.Load(), inside.Add(1)))
				if err := arena.Remove(path, 0); !errors.Is(err, arena.ErrStuck) || !strings.Contains(err.Error(), path) {
					t.Errorf("removed while it was opened: %v", err)
				}
				a.Locks.Lock(int(joined.Add(1)))
				inside.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { a.File.Close() })
		})
	}
	all.Wait()
	if most.Load() != 1 || joined.Load() != 8 {
		t.Errorf("%d joined, %d at the same time; want 8 and 1", joined.Load(), most.Load())
	}
	if err := arena.Remove(path, patience); !errors.Is(err, arena.ErrInUse) {
		t.Errorf("removed what is in use: %v", err)
	}
}

// If join fails, nothing is left behind.
func TestB8_ArenaJoinFails(t *testing.T) {
	path := newPath(t)
	full := errors.New("full")
	for range 2 {
		_, err := arena.Open(t.Context(), path, layout, patience, func(*arena.Arena) error { return full })
		if !errors.Is(err, full) {
			t.Errorf("opened: %v, want %v", err, full)
		}
	}
	if err := arena.Remove(path, patience); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestB8_ArenaLook(t *testing.T) {
	path := newPath(t)
	a := open(t, path)
	a.Words[99] = 7
	a.Locks.Lock(5)
	b, err := arena.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.File.Close()
	if w := b.Words; len(w) != 100 || w[99] != 7 || !slices.Equal(b.Geometry, layout.Geometry) {
		t.Errorf("it sees %d words, and %d", len(w), b.Geometry)
	}
	if !b.Locks.Held(5) || b.Locks.Held(4) || b.Locks.Lock(4) {
		t.Error("it does not see the locks, or takes one")
	}
	a.Locks.Unlock(5)
	for says, change := range map[string]func(*testing.T, string){
		"incomplete": poke(0, unfinished), "last started": poke(3, 0),
	} {
		t.Run(says, func(t *testing.T) {
			change(t, path)
			if _, err := arena.Look(path); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("looked: %v, want an error that says %q", err, says)
			}
			open(t, path)
		})
	}
	_, err = arena.Open(t.Context(), path, layout, patience, func(*arena.Arena) error {
		poke(0, unfinished)(t, path)
		_, err := arena.Look(path)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "being made") {
		t.Errorf("looked: %v, want an error that says that it is being made", err)
	}
}

// A file that is in use is of this run of the machine, even if its header has another
// boot id.
func TestB8_ArenaOfAnotherBoot(t *testing.T) {
	path := newPath(t)
	open(t, path).Locks.Lock(5)
	poke(3, 1)(t, path)
	_, err := arena.Look(path)
	if !errors.Is(err, arena.ErrMismatch) || !strings.Contains(err.Error(), "another boot id") {
		t.Errorf("looked: %v, want a mismatch of the boot", err)
	}
}

// overwrite changes a byte of a file.
func overwrite(t *testing.T, path string, at int64, b byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{b}, at); err != nil {
		t.Fatal(err)
	}
}

func TestB8_ArenaPermissions(t *testing.T) {
	path := newPath(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := info.Mode(); m != 0o600 {
		t.Errorf("its mode is %v", m)
	}
	if err := os.Chmod(path, 0o660); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	if _, err := tryOpen(path, layout); !errors.Is(err, arena.ErrNotOurs) {
		t.Errorf("opened for a group: %v, want a refusal", err)
	}
	link := newPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(link, layout); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("opened through a link: %v, want a refusal", err)
	}
	if _, err := tryOpen(filepath.Dir(path), layout); err == nil {
		t.Error("opened a directory")
	}
}

func TestB8_ArenaPrivateDirectory(t *testing.T) {
	dir, err := arena.MakePrivate()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%s has mode %v, %v", dir, info.Mode(), err)
	}
}

// If there is not enough memory, making the file fails and does not occupy space.
func TestB8_ArenaFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	huge := arena.Layout{Words: math.MaxInt / 16}
	_, err := tryOpen(path, huge)
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EFBIG) {
		t.Errorf("made a file larger than the file system: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed attempt has left a file: %v", err)
	}
	open(t, path).Words[99] = 1
}

func TestB8_ArenaLocks(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	for range 2 {
		if !a.Locks.Lock(5) {
			t.Fatal("a lock that is free, or held by this process, was refused")
		}
	}
	if b.Locks.Lock(5) || !b.Locks.Held(5) || a.Locks.Held(5) || b.Locks.Held(4) || b.Locks.Held(6) {
		t.Error("the lock is not held by this process")
	}
	a.Locks.Unlock(5)
	if b.Locks.Held(5) || !b.Locks.Lock(5) {
		t.Error("the lock was not released")
	}
}

// A sleeper is woken by another process that has the file open, and does not fall
// asleep if the word has changed.
func TestB8_ArenaSleep(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	bell := &a.Words[3]
	arena.Sleep(bell, 1, time.Hour)
	arena.Sleep(bell, 0, time.Millisecond)
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		for atomic.LoadUint64(bell) == 0 {
			arena.Sleep(bell, 0, time.Hour)
		}
	}()
	atomic.StoreUint64(&b.Words[3], 1)
	arena.Wake(&b.Words[3])
	<-woken
}

// The clock equals the system's, which all processes share: a reading lies between two
// readings of the system's clock, apart from the calibration error.
func TestB8_ArenaClock(t *testing.T) {
	const exact = int64(100 * time.Microsecond)
	last := int64(0)
	for range 1000 {
		before, now, after := monotonic(t), arena.Now(), monotonic(t)
		if now < last {
			t.Fatalf("the clock went back from %d to %d", last, now)
		}
		if now < before-exact || now > after+exact {
			t.Fatalf("the clock read %d between %d and %d", now, before, after)
		}
		last = now
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}
