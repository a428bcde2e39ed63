package filestore_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/internal/machine"
)

// countingDisk counts what is written to the file of starts, which can be cut off in
// the middle of that.
type countingDisk struct {
	vfs.FS
	writes int
	left   int // bytes that can be written; -1: all
}

func (d *countingDisk) OpenReadWrite(
	name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption,
) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, opts...)
	if err == nil && strings.HasSuffix(name, filestore.StartsFile) {
		f = countedFile{f, d}
	}
	return f, err
}

type countedFile struct {
	vfs.File
	of *countingDisk
}

func (f countedFile) WriteAt(p []byte, at int64) (int, error) {
	f.of.writes++
	if f.of.left < 0 || f.of.left >= len(p) {
		return f.File.WriteAt(p, at)
	}
	n, err := f.File.WriteAt(p[:f.of.left], at)
	return n, errors.Join(err, syscall.EIO)
}

// claimMany claims for a worker in another process, whose leases are nowhere but in
// the file of starts.
func (c *tasks) claimMany(n int) []queue.Task {
	c.t.Helper()
	claimed, err := c.store.Claim(c.t.Context(), c.now, queue.Claim{
		Worker: "w", Kinds: []string{"k"}, Max: n, Lease: time.Hour, Remote: true,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return claimed.Tasks
}

// TestC6_StartsOfAClaimAreWrittenTogether: whatever places are free, all starts of a
// claim are there when the store is opened again, and most of them are written at once.
func TestC6_StartsOfAClaimAreWrittenTogether(t *testing.T) {
	r := seeded.Rand(t)
	disk := &countingDisk{FS: vfs.NewMem(), left: -1}
	c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
	var running []queue.Task
	for range 20 {
		for range 100 {
			if err := c.submit(1); err != nil {
				t.Fatal(err)
			}
		}
		disk.writes = 0
		claimed := c.claimMany(100)
		if most := 2 + (100-1)/64 + len(running); disk.writes > most {
			t.Errorf("100 starts are written by %d calls, with %d gaps at most", disk.writes, len(running))
		}
		running = append(running, claimed...)
		r.Shuffle(len(running), func(i, k int) { running[i], running[k] = running[k], running[i] })
		keep := r.IntN(20)
		for _, task := range running[keep:] {
			if err := c.settle(task); err != nil {
				t.Fatal(err)
			}
		}
		running = slices.Clone(running[:keep])
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
		c.store = openIn(t, disk, "store", filestore.Config{})
		found, err := c.store.Find(t.Context(), queue.Filter{States: []queue.State{queue.Running}}, queue.Page{})
		if err != nil || len(found) != len(running) {
			t.Fatalf("%d tasks run, and %d did; %v", len(found), len(running), err)
		}
	}
	for _, task := range running {
		if err := c.settle(task); err != nil {
			t.Error(err)
		}
	}
}

// TestC6_StartsOfLeasesThatAreOver: what ends before its start is noted is left out,
// and its place may be another's by then.
func TestC6_StartsOfLeasesThatAreOver(t *testing.T) {
	disk := vfs.NewMem()
	open := func() machine.Starts {
		starts, err := filestore.OpenStarts(disk, "")
		if err != nil {
			t.Fatal(err)
		}
		return starts
	}
	starts := open()
	var claimed []machine.Noted
	for token := range queue.Token(5) {
		s := one()
		s.Token = token + 1
		place, err := starts.Reserve(s.Token)
		if err != nil {
			t.Fatal(err)
		}
		claimed = append(claimed, machine.Noted{Place: place, Start: s})
	}
	starts.Free(claimed[0].Place, claimed[0].Token)
	starts.Free(claimed[3].Place, claimed[3].Token)
	if n, err := starts.Put(claimed); n != len(claimed) || err != nil {
		t.Errorf("it is done with %d of %d, %v", n, len(claimed), err)
	}
	var noted []queue.Token
	if err := open().Recall(func(_ int, s machine.Start) { noted = append(noted, s.Token) }); err != nil {
		t.Fatal(err)
	}
	if want := []queue.Token{2, 3, 5}; !slices.Equal(noted, want) {
		t.Errorf("noted are %d, and not %d", noted, want)
	}
}

// TestC6_PlacesAreUsedAgain: the file has no more places than there were leases at a
// time, but for those by which it grows.
func TestC6_PlacesAreUsedAgain(t *testing.T) {
	disk := vfs.NewMem()
	c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
	const atOnce = 100
	for range 5 {
		for range atOnce {
			if err := c.submit(1); err != nil {
				t.Fatal(err)
			}
		}
		for _, task := range c.claimMany(atOnce) {
			if err := c.settle(task); err != nil {
				t.Fatal(err)
			}
		}
	}
	info, err := disk.Stat(disk.PathJoin("store", filestore.StartsFile))
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size(); size > 256*filestore.PlaceSize {
		t.Errorf("for %d tasks at a time the file has %d bytes", atOnce, size)
	}
}

// TestC6_StartsThatAreWrittenInPart: of starts that are written at once, those count
// that are there as a whole.
func TestC6_StartsThatAreWrittenInPart(t *testing.T) {
	for _, left := range []int{0, 1, 50, 256, 2*256 + 50, 10*256 - 206} {
		disk := &countingDisk{FS: vfs.NewMem(), left: -1}
		c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
		for range 11 {
			if err := c.submit(1); err != nil {
				t.Fatal(err)
			}
		}
		first := c.claimMany(1)
		disk.left = left
		whole := left / filestore.PlaceSize
		claimed, err := c.store.Claim(t.Context(), c.now, queue.Claim{
			Worker: "w", Kinds: []string{"k"}, Max: 10, Lease: time.Hour, Remote: true,
		})
		if len(claimed.Tasks) != whole || errors.Is(err, syscall.EIO) != (whole == 0) {
			t.Fatalf("after %d bytes the claim gives %d tasks, %v", left, len(claimed.Tasks), err)
		}
		disk.left = -1
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
		c.store = openIn(t, disk, "store", filestore.Config{})
		for _, task := range append(first, claimed.Tasks...) {
			if err := c.settle(task); err != nil {
				t.Errorf("after %d bytes: %v", left, err)
			}
		}
		if rest := c.claimMany(100); len(rest) != 10-whole {
			t.Errorf("after %d bytes %d tasks are left, and not %d", left, len(rest), 10-whole)
		}
	}
}
