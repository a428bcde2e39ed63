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

// one is a start that has everything.
func one() machine.Start {
	return machine.Start{
		ID: queue.ID{1, 15: 2}, Seq: 1 << 40, Token: 3<<40 + 1, At: time.Unix(1e9, 7).UTC(),
		Worker: "host-1-a", Remote: time.Minute,
	}
}

func TestC6_StartsAreReadAsTheyWereWritten(t *testing.T) {
	for _, name := range []string{"", "host-1-a", strings.Repeat("n", 200)} {
		want := one()
		want.Worker = name
		if got, ok := filestore.DecodeStart(filestore.EncodeStart(want)); !ok || got != want {
			t.Errorf("the start is %+v, and was %+v", got, want)
		}
	}
	long := one()
	long.Worker = strings.Repeat("n", 199) + "ä" // which ends behind the place
	if got, ok := filestore.DecodeStart(filestore.EncodeStart(long)); !ok || got.Worker != strings.Repeat("n", 199) {
		t.Errorf("the name of a worker that is too long comes back as %q", got.Worker)
	}
}

// TestC6_DamagedStartsAreEmpty: whichever byte of a place is wrong, there is nothing
// in it.
func TestC6_DamagedStartsAreEmpty(t *testing.T) {
	for i := range filestore.EncodeStart(one()) {
		b := filestore.EncodeStart(one())
		b[i] ^= 0x10
		if got, ok := filestore.DecodeStart(b); ok {
			t.Errorf("with byte %d wrong it is read as %+v", i, got)
		}
	}
}

// FuzzStarts reads places with any content whose checksum is right.
func FuzzStarts(f *testing.F) {
	b := filestore.EncodeStart(one())
	f.Add(b[:])
	f.Add([]byte{4: 1, 5: 255})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, b := range [][]byte{content, filestore.WithSum(content)} {
			s, ok := filestore.DecodeStart([filestore.PlaceSize]byte(append(b, make([]byte, filestore.PlaceSize)...)))
			if !ok {
				continue
			}
			if again, ok := filestore.DecodeStart(filestore.EncodeStart(s)); !ok || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v comes back as %+v", s, again)
			}
		}
	})
}

// startsDisk is a disk on which the file of starts cannot be written.
func startsDisk(disk vfs.FS, broken *atomic.Pointer[error]) vfs.FS {
	return filestore.Intercept(disk, func(op, path string, run func() error) error {
		if err := broken.Load(); err != nil && op == filestore.OpWrite && strings.HasSuffix(path, filestore.StartsFile) {
			return &fs.PathError{Op: op, Path: path, Err: *err}
		}
		return run()
	})
}

// TestC6_StartThatCannotBeNoted: with no room for more starts, or a disk that fails
// on that file, no task starts, and the claim says why; what runs goes on, and all
// goes on when the disk is well again.
func TestC6_StartThatCannotBeNoted(t *testing.T) {
	for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
		var broken atomic.Pointer[error]
		c := newTasks(t, openIn(t, startsDisk(vfs.NewMem(), &broken), "store", filestore.Config{}))
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
			t.Errorf("%v: a claim says %v", failure, err)
		}
		if err := errors.Join(c.settle(first), c.submit(1)); err != nil {
			t.Errorf("%v: %v", failure, err)
		}
		broken.Store(nil)
		for range 2 {
			if err := c.succeed(); err != nil {
				t.Errorf("%v: with the disk well again: %v", failure, err)
			}
		}
		tasks, err := all(t.Context(), c.store)
		for _, task := range tasks {
			if task.State != queue.Succeeded || task.Crashes != 0 {
				t.Errorf("%v: a task is %s, with %d crashes, %v", failure, task.State, task.Crashes, err)
			}
		}
	}
}

// TestC6_NoRoomForStarts: the file grows before a task is started for which there is
// no place, so on a full disk nothing is to be taken back.
func TestC6_NoRoomForStarts(t *testing.T) {
	var broken atomic.Pointer[error]
	c := newTasks(t, openIn(t, startsDisk(vfs.NewMem(), &broken), "store", filestore.Config{}))
	if err := c.submit(1); err != nil {
		t.Fatal(err)
	}
	full := error(syscall.ENOSPC)
	broken.Store(&full) // from the first place on
	if _, err := c.claim(); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a claim says %v", err)
	}
	tasks, err := all(t.Context(), c.store)
	for _, task := range tasks {
		if len(task.Steps) != 1 {
			t.Errorf("the task has the steps %v, %v", task.Steps, err)
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

// TestC6_StartsThatAreGone: whatever has become of the file, the directory opens, and
// the tasks that ran run again.
func TestC6_StartsThatAreGone(t *testing.T) {
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
			if err := damage(filepath.Join(dir, filestore.StartsFile)); err != nil {
				t.Fatal(err)
			}
			c.store = openDir(t, dir)
			if err := c.settle(first); !errors.Is(err, queue.ErrStale) {
				t.Errorf("a worker whose lease is forgotten is answered %v", err)
			}
			if err := errors.Join(c.succeed(), c.store.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestC6_RemoteLeaseInADirectory: closing and opening it in the real file system, a
// lease of another process stays, and places are used again.
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
	info, err := os.Stat(filepath.Join(dir, filestore.StartsFile))
	if err != nil || info.Size() >= many*filestore.PlaceSize {
		t.Errorf("for 2 tasks at a time the file has %d bytes, %v", info.Size(), err)
	}
	c.store = openDir(t, dir)
	if err := errors.Join(c.settle(first), c.store.Close()); err != nil {
		t.Error(err)
	}
}
