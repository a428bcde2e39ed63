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

// countingDisk counts the writes to the lease log, and can fail one in the middle.
type countingDisk struct {
	vfs.FS
	writes int
	left   int // the number of bytes that can be written; -1: no limit
}

func (d *countingDisk) OpenReadWrite(
	name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption,
) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, opts...)
	if err == nil && strings.HasSuffix(name, filestore.LeaseLogFile) {
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

// claimMany claims for a worker in another process, so that only the lease log has the
// leases.
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

// Whatever slots are free, a store that is opened again has all leases of a claim, and few
// writes recorded them.
func TestC6_LeasesOfAClaimAreWrittenTogether(t *testing.T) {
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
			t.Errorf("100 leases took %d writes, with at most %d gaps between free slots", disk.writes, len(running))
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
			t.Fatalf("%d tasks run after the store was opened again, want %d; error %v", len(found), len(running), err)
		}
	}
	for _, task := range running {
		if err := c.settle(task); err != nil {
			t.Error(err)
		}
	}
}

// Put omits a lease that has ended: its slot may have another owner.
func TestC6_LeasesThatHaveEndedAreNotRecorded(t *testing.T) {
	disk := vfs.NewMem()
	open := func() machine.LeaseStorage {
		l, err := filestore.OpenLeaseLog(disk, "")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	var claimed []machine.SlotEntry
	for token := range queue.Token(5) {
		e := fullEntry()
		e.Token = token + 1
		slot, err := l.Reserve(e.Token)
		if err != nil {
			t.Fatal(err)
		}
		claimed = append(claimed, machine.SlotEntry{Slot: slot, LeaseEntry: e})
	}
	l.Free(claimed[0].Slot, claimed[0].Token)
	l.Free(claimed[3].Slot, claimed[3].Token)
	if n, err := l.Put(claimed); n != len(claimed) || err != nil {
		t.Errorf("Put has done %d of %d entries, error %v", n, len(claimed), err)
	}
	var recorded []queue.Token
	if err := open().Recall(func(_ int, e machine.LeaseEntry) { recorded = append(recorded, e.Token) }); err != nil {
		t.Fatal(err)
	}
	if want := []queue.Token{2, 3, 5}; !slices.Equal(recorded, want) {
		t.Errorf("the lease log has the tokens %d, want %d", recorded, want)
	}
}

// The file has as many slots as there were leases at a time, rounded up to its growth.
func TestC6_SlotsAreReused(t *testing.T) {
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
	info, err := disk.Stat(disk.PathJoin("store", filestore.LeaseLogFile))
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size(); size > 256*filestore.SlotSize {
		t.Errorf("with %d leases at a time the file has %d bytes", atOnce, size)
	}
}

// If a write of several entries fails in the middle, the tasks of the whole entries have
// started.
func TestC6_LeasesThatAreWrittenInPart(t *testing.T) {
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
		whole := left / filestore.SlotSize
		claimed, err := c.store.Claim(t.Context(), c.now, queue.Claim{
			Worker: "w", Kinds: []string{"k"}, Max: 10, Lease: time.Hour, Remote: true,
		})
		if len(claimed.Tasks) != whole || errors.Is(err, syscall.EIO) != (whole == 0) {
			t.Fatalf("after %d bytes the claim returns %d tasks, error %v", left, len(claimed.Tasks), err)
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
			t.Errorf("after %d bytes %d tasks are waiting, want %d", left, len(rest), 10-whole)
		}
	}
}
