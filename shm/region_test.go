//go:build linux

package shm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// A region of another geometry is made anew if it is not in use, and refused otherwise.
func TestB8_RegionMismatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	for _, other := range []shm.Geometry{
		{Slots: []int{4, 3}},
		{Slots: []int{4}},
		{Slots: []int{4, 2, 1}},
		{Slots: []int{4, 2}, Mutexes: 1},
	} {
		r := open(t, path, shm.Geometry{Slots: []int{4, 2}})
		_, err := shm.Open(path, other)
		if !errors.Is(err, shm.ErrMismatch) || !errors.Is(err, shm.ErrInUse) || !strings.Contains(err.Error(), me()) {
			t.Errorf("opened with %v: %v, want a mismatch that names %s", other, err, me())
		}
		want := fmt.Sprintf("with slots [4 2]; asked for %v: open it with the same", other)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q", err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := open(t, path, other).Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestB8_GeometryString(t *testing.T) {
	for want, g := range map[string]shm.Geometry{
		"slots [3]": {Slots: []int{3}},
		"1 mutex":   {Mutexes: 1},
		"slots [4 16], 2 mutexes, rates [20/s capacity 5, 0.5/s capacity 1]": {
			Slots: []int{4, 16}, Mutexes: 2, Rates: []shm.Rate{{PerSecond: 20, Capacity: 5}, {PerSecond: 0.5}},
		},
	} {
		if got := g.String(); got != want {
			t.Errorf("a geometry is shown as %q, want %q", got, want)
		}
	}
}

// An index that the region does not have panics with a message that names it.
func TestB8_RegionIndex(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "region"), shm.Geometry{Slots: []int{4}, Mutexes: 1})
	for want, f := range map[string]func(){
		"shm: no limit 1: the region has 1, counted from 0":  func() { r.Slots(1) },
		"shm: no limit -1: the region has 1, counted from 0": func() { r.Slots(-1) },
		"shm: no mutex 1: the region has 1, counted from 0":  func() { r.Mutex(1) },
		"shm: no rate 0: the region has 0, counted from 0":   func() { r.Bucket(0) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("it panicked with %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

// me is the name under which this process is listed.
func me() string { return fmt.Sprintf("%s[%d]", filepath.Base(os.Args[0]), os.Getpid()) }

// If a process is stopped while it opens a region, others wait for a while and then get
// ErrStuck.
func TestB8_RegionIsStuck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	p := start(t, "open halfway", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	p.signal(t, syscall.SIGSTOP)
	_, err := shm.OpenWithin(path, geometry, time.Millisecond)
	if !errors.Is(err, shm.ErrStuck) || !strings.Contains(err.Error(), "fuser -v "+path) {
		t.Errorf("opened: %v, want an error that says what to do", err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := shm.OpenContext(ctx, path, geometry); !errors.Is(err, shm.ErrStuck) || !errors.Is(err, why) {
		t.Errorf("opened with a context that has ended: %v, want its cause and ErrStuck", err)
	}
	opened := make(chan error)
	go func() {
		r, err := shm.OpenWithin(path, geometry, patience)
		if err == nil {
			err = r.Close()
		}
		opened <- err
	}()
	p.kill()
	if err := <-opened; err != nil {
		t.Errorf("after the stopped process has ended: %v", err)
	}
	r, err := shm.OpenContext(ctx, path, geometry)
	if err != nil {
		t.Fatalf("with nothing to wait for: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestB8_RegionGeometry(t *testing.T) {
	for _, wrong := range []shm.Geometry{
		{},
		{Slots: []int{0}},
		{Slots: []int{-1}},
		{Slots: []int{shm.SlotsMax + 1}},
		{Slots: make([]int, 1000)},
		{Slots: []int{1}, Mutexes: -1},
		{Mutexes: 1000},
		{Mutexes: math.MaxInt},
		{Slots: []int{1}, Mutexes: math.MaxInt},
		{Slots: []int{1}, Mutexes: math.MinInt},
		{Slots: make([]int, 1000), Mutexes: -1},
	} {
		if _, err := shm.Open(filepath.Join(t.TempDir(), "region"), wrong); err == nil {
			t.Errorf("opened with %v", wrong)
		}
	}
	wrong := shm.Geometry{Slots: []int{0, 1, -5}, Mutexes: -1, Rates: []shm.Rate{{}}}
	_, err := shm.Open(filepath.Join(t.TempDir(), "region"), wrong)
	for _, says := range []string{"Slots[0] is 0", "Slots[2] is -5", "Mutexes is -1", "Rates[0]: rate 0 "} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %q, want one that says %q", err, says)
		}
	}
}

// A name without a slash is that of a file that other users cannot open.
func TestB8_RegionName(t *testing.T) {
	name := "test-" + filepath.Base(t.TempDir()) + "-" + filepath.Base(filepath.Dir(t.TempDir()))
	a := open(t, name, geometry)
	b := open(t, name, geometry)
	a.Slots(0).Bind(func() {}, nil)
	if _, err := a.Slots(0).TryAcquire(stint.Normal); err != nil {
		t.Fatal(err)
	}
	if n := b.Slots(0).Usage().Running; n != 1 {
		t.Errorf("%d run in the other region, want 1", n)
	}
	found, err := filepath.Glob("/dev/shm/stint-*/" + name)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %q, %v; want one file", found, err)
	}
	if err := os.Remove(found[0]); err != nil {
		t.Error(err)
	}
	for wrong, says := range map[string]string{
		"": "is empty: give one", ".": "not the name of a region: give one", "..": "not the name",
		"  ": "blank", "a\nb": `"a\nb" has control characters`, "a\x1b[1m": "control characters",
	} {
		if _, err := shm.Open(wrong, geometry); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("opened %q: %v, want a refusal that says %q", wrong, err, says)
		}
	}
}

func TestB8_RegionIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	var all []*shm.Region
	for range shm.ProcessesMax {
		all = append(all, open(t, path, geometry))
	}
	_, err := shm.Open(path, geometry)
	says := "64 have it open, the maximum; `stint shm ls " + path + "`"
	if !errors.Is(err, shm.ErrFull) || !strings.Contains(err.Error(), says) {
		t.Errorf("one more was opened: %v, want a refusal", err)
	}
	if err := all[5].Close(); err != nil {
		t.Error(err)
	}
	open(t, path, geometry)
}

// A region can be opened and closed any number of times: what was held is released
// each time, and the memory is mapped once.
func TestB8_RegionOpensAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	for i := range 200 {
		r, err := shm.Open(path, shm.Geometry{Slots: []int{1}, Mutexes: 1})
		if err != nil {
			t.Fatal(err)
		}
		slots := r.Slots(0)
		slots.Bind(func() {}, nil)
		if _, err := slots.TryAcquire(stint.Normal); err != nil {
			t.Fatalf("opened for time %d: %v", i, err)
		}
		lock(t, r.Mutex(0), i > 0)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(maps), path); n != 1 {
		t.Errorf("it is mapped %d times, want 1", n)
	}
}

func TestB8_RegionIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r, slots, grant := wanted(t, path)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("closed with %v", err)
		}
	}
	if _, err := slots.TryAcquire(stint.Normal); !errors.Is(err, shm.ErrClosed) {
		t.Errorf("a slot of a closed region: %v", err)
	}
	slots.Release(grant)
	slots.Want(stint.Normal, 0)
	if u := slots.Usage(); u.Err == "" || u.Running != 0 {
		t.Errorf("usage of a closed region is %+v", u)
	}
	other := open(t, path, shm.Geometry{Slots: []int{1}}).Slots(0)
	other.Bind(func() {}, nil)
	if _, err := other.TryAcquire(stint.Normal); err != nil {
		t.Errorf("the slot of a closed region was not released: %v", err)
	}
}
