package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/internal/machine"
)

// fullEntry returns an entry that sets all fields.
func fullEntry() machine.LeaseEntry {
	return machine.LeaseEntry{
		ID: queue.ID{1, 15: 2}, Seq: 1 << 40, Token: 3<<40 + 1, At: time.Unix(1e9, 7).UTC(),
		Worker: "host-1-a", Remote: time.Minute,
	}
}

func TestC6_LeaseEntriesAreDecodedAsEncoded(t *testing.T) {
	for _, name := range []string{"", "host-1-a", strings.Repeat("n", 200)} {
		want := fullEntry()
		want.Worker = name
		if got, ok := filestore.DecodeEntry(filestore.EncodeEntry(want)); !ok || got != want {
			t.Errorf("the decoded entry is %+v, want %+v", got, want)
		}
	}
	long := fullEntry()
	long.Worker = strings.Repeat("n", 199) + "ä" // which ends behind the slot
	if got, ok := filestore.DecodeEntry(filestore.EncodeEntry(long)); !ok || got.Worker != strings.Repeat("n", 199) {
		t.Errorf("a worker's name that is too long is decoded as %q", got.Worker)
	}
}

// A slot with a wrong byte, at any offset, is empty.
func TestC6_DamagedSlotsAreEmpty(t *testing.T) {
	for i := range filestore.EncodeEntry(fullEntry()) {
		b := filestore.EncodeEntry(fullEntry())
		b[i] ^= 0x10
		if got, ok := filestore.DecodeEntry(b); ok {
			t.Errorf("with byte %d wrong the slot is decoded as %+v, want no entry", i, got)
		}
	}
}

// FuzzLeaseLog decodes slots with any content, also with the right checksum.
func FuzzLeaseLog(f *testing.F) {
	b := filestore.EncodeEntry(fullEntry())
	f.Add(b[:])
	f.Add([]byte{4: 1, 5: 255})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, b := range [][]byte{content, filestore.WithChecksum(content)} {
			s, ok := filestore.DecodeEntry([filestore.SlotSize]byte(append(b, make([]byte, filestore.SlotSize)...)))
			if !ok {
				continue
			}
			if again, ok := filestore.DecodeEntry(filestore.EncodeEntry(s)); !ok || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v is encoded and decoded as %+v", s, again)
			}
		}
	})
}

// leaseLogDisk returns a disk on which writes to the lease log fail while broken has an error.
func leaseLogDisk(disk vfs.FS, broken *atomic.Pointer[error]) vfs.FS {
	return filestore.Intercept(disk, func(op, path string, run func() error) error {
		if err := broken.Load(); err != nil && op == filestore.OpWrite && strings.HasSuffix(path, filestore.LeaseLogFile) {
			return &fs.PathError{Op: op, Path: path, Err: *err}
		}
		return run()
	})
}

// If the lease log cannot be written, because the disk is full or fails, no task starts and
// the error of the claim names the reason. Running tasks continue, and claims succeed when
// the disk does.
func TestC6_LeaseThatCannotBeRecorded(t *testing.T) {
	for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
		var broken atomic.Pointer[error]
		c := newTasks(t, openIn(t, leaseLogDisk(vfs.NewMem(), &broken), "store", filestore.Config{}))
		for range 2 {
			if err := c.submit(1); err != nil {
				t.Fatal(err)
			}
		}
		first, err := c.claim()
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(&failure)
		if _, err := c.claim(); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, failure) ||
			!strings.Contains(err.Error(), "make room") {
			t.Errorf("%v: the error of a claim is %v", failure, err)
		}
		if err := errors.Join(c.settle(first), c.submit(1)); err != nil {
			t.Errorf("%v: %v", failure, err)
		}
		broken.Store(nil)
		for range 2 {
			if err := c.succeed(); err != nil {
				t.Errorf("%v: when the disk works again: %v", failure, err)
			}
		}
		tasks, err := all(t.Context(), c.store)
		for _, task := range tasks {
			if task.State != queue.Succeeded || task.Crashes != 0 {
				t.Errorf("%v: a task is %s with %d crashes, want succeeded with none; error %v",
					failure, task.State, task.Crashes, err)
			}
		}
	}
}

// The file grows before a task without a slot starts, so a full disk undoes no start.
func TestC6_NoRoomForLeases(t *testing.T) {
	var broken atomic.Pointer[error]
	c := newTasks(t, openIn(t, leaseLogDisk(vfs.NewMem(), &broken), "store", filestore.Config{}))
	if err := c.submit(1); err != nil {
		t.Fatal(err)
	}
	full := error(syscall.ENOSPC)
	broken.Store(&full) // from the first slot on
	if _, err := c.claim(); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error of a claim is %v", err)
	}
	tasks, err := all(t.Context(), c.store)
	for _, task := range tasks {
		if len(task.Steps) != 1 {
			t.Errorf("the task has the steps %v, want one; error %v", task.Steps, err)
		}
	}
	broken.Store(nil)
	if err := c.succeed(); err != nil {
		t.Error(err)
	}
}

// claim claims the next task for a worker in another process.
func (c *tasks) claim() (queue.Task, error) {
	claimed, err := c.store.Claim(c.t.Context(), c.now, queue.Claim{
		Worker: "w", Kinds: []string{"k"}, Max: 1, Lease: time.Hour, Remote: true,
	})
	if err != nil {
		return queue.Task{}, err
	}
	return claimed.Tasks[0], nil
}

func (c *tasks) settle(t queue.Task) error {
	answers, err := c.store.Settle(c.t.Context(), c.now, []queue.Outcome{
		{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess},
	})
	return errors.Join(append(answers, err)...)
}

// A directory whose lease log is missing or damaged opens, and its running tasks run again.
func TestC6_LeaseLogThatIsLost(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"removed":   os.Remove,
		"cut short": func(path string) error { return os.Truncate(path, 100) },
		"garbage":   func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("garbage", 9999)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			c := newTasks(t, openDir(t, dir))
			if err := c.submit(1); err != nil {
				t.Fatal(err)
			}
			first, err := c.claim()
			if err := errors.Join(err, c.store.Close()); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, filestore.LeaseLogFile)); err != nil {
				t.Fatal(err)
			}
			c.store = openDir(t, dir)
			if err := c.settle(first); !errors.Is(err, queue.ErrStale) {
				t.Errorf("the settle of a forgotten lease returns %v, want ErrStale", err)
			}
			if err := errors.Join(c.succeed(), c.store.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// In a real directory a lease of another process outlives Close and Open, and slots are
// reused.
func TestC6_RemoteLeaseInADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := newTasks(t, openDir(t, dir))
	if err := c.submit(1); err != nil {
		t.Fatal(err)
	}
	first, err := c.claim()
	if err != nil {
		t.Fatal(err)
	}
	const many = 400
	for range many {
		if err := errors.Join(c.submit(1), c.succeed()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, filestore.LeaseLogFile))
	if err != nil || info.Size() >= many*filestore.SlotSize {
		t.Errorf("with 2 leases at a time the file has %d bytes, error %v", info.Size(), err)
	}
	c.store = openDir(t, dir)
	if err := errors.Join(c.settle(first), c.store.Close()); err != nil {
		t.Error(err)
	}
}
