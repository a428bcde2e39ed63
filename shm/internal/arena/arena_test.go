//go:build linux

package arena_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
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

func open(t *testing.T, path string) *arena.Arena {
	t.Helper()
	a, err := arena.Open(path, layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "region")
}

func TestB8_ArenaIsShared(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	if n := len(a.Words()); n != layout.Words {
		t.Fatalf("%d words, want %d", n, layout.Words)
	}
	for i, w := range b.Words() {
		if w != 0 {
			t.Fatalf("word %d of a new arena is %d", i, w)
		}
	}
	a.Words()[99] = 7
	if got := b.Words()[99]; got != 7 {
		t.Errorf("the other one reads %d, want 7", got)
	}
	if a.Identity() != b.Identity() || a.Identity() == open(t, newPath(t)).Identity() {
		t.Error("identities do not tell files apart")
	}
}

// All come first at the same time; what one has written is not made new by another.
func TestB8_ArenaIsMadeOnce(t *testing.T) {
	path := newPath(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { atomic.AddUint64(&open(t, path).Words()[0], 1) })
	}
	all.Wait()
	if n := open(t, path).Words()[0]; n != 16 {
		t.Errorf("%d were counted, want 16", n)
	}
}

func TestB8_ArenaMismatch(t *testing.T) {
	path := newPath(t)
	open(t, path)
	for _, other := range []arena.Layout{
		{Words: 100, Geometry: []uint64{4, 3}},
		{Words: 100, Geometry: []uint64{4}},
		{Words: 101, Geometry: []uint64{4, 2}},
	} {
		if _, err := arena.Open(path, other); !errors.Is(err, arena.ErrMismatch) {
			t.Errorf("opened with %v: %v, want a mismatch", other, err)
		}
	}
	if err := os.Truncate(path, 4096+8); err != nil {
		t.Fatal(err)
	}
	if _, err := arena.Open(path, layout); !errors.Is(err, arena.ErrMismatch) {
		t.Errorf("opened what was cut off: %v, want a mismatch", err)
	}
	overwrite(t, path, 8, 99)
	if _, err := arena.Open(path, layout); !errors.Is(err, arena.ErrMismatch) || !strings.Contains(err.Error(), "99") {
		t.Errorf("opened of another version: %v, want a mismatch that names it", err)
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

// A file that was made before the machine was started, or that its maker has not
// finished, is made anew.
func TestB8_ArenaIsMadeAnew(t *testing.T) {
	for name, at := range map[string]int64{"not ready": 0, "another boot": 3 * 8} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			open(t, path).Words()[0] = 7
			overwrite(t, path, at, 'x')
			if w := open(t, path).Words()[0]; w != 0 {
				t.Errorf("word 0 is %d, want 0", w)
			}
		})
	}
}

func TestB8_ArenaIsOursAlone(t *testing.T) {
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
	if _, err := arena.Open(path, layout); !errors.Is(err, arena.ErrNotOurs) {
		t.Errorf("opened for a group: %v, want a refusal", err)
	}
	link := newPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := arena.Open(link, layout); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("opened through a link: %v, want a refusal", err)
	}
	if _, err := arena.Open(filepath.Dir(path), layout); err == nil {
		t.Error("opened a directory")
	}
}

func TestB8_ArenaPrivateDirectory(t *testing.T) {
	dir, err := arena.Private()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%s has mode %v, %v", dir, info.Mode(), err)
	}
}

// Memory that is not there is an error when the file is made, and takes no room
// afterwards.
func TestB8_ArenaFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	huge := arena.Layout{Words: math.MaxInt / 16}
	_, err := arena.Open(path, huge)
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EFBIG) {
		t.Errorf("made of more than there can be: %v", err)
	}
	open(t, path).Words()[99] = 1
}

func TestB8_ArenaLocks(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	for range 2 {
		if !a.Lock(5) {
			t.Fatal("a lock that is free, or one's own, was refused")
		}
	}
	if b.Lock(5) || !b.Held(5) || a.Held(5) || b.Held(4) || b.Held(6) {
		t.Error("the lock is not one's own")
	}
	a.Unlock(5)
	if b.Held(5) || !b.Lock(5) {
		t.Error("the lock was not given back")
	}
}

// Whoever sleeps is woken from another mapping of the file, and does not fall
// asleep if the word is no longer what it was.
func TestB8_ArenaSleep(t *testing.T) {
	path := newPath(t)
	a, b := open(t, path), open(t, path)
	bell := &a.Words()[3]
	a.Sleep(bell, 1, time.Hour)
	a.Sleep(bell, 0, time.Millisecond)
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		for atomic.LoadUint64(bell) == 0 {
			a.Sleep(bell, 0, time.Hour)
		}
	}()
	atomic.StoreUint64(&b.Words()[3], 1)
	b.Wake(&b.Words()[3])
	<-woken
}

// The clock is the system's, which all processes share: what it reads between two
// readings of that lies between them, but for the error of the calibration.
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
