package filestore_test

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// faulty is a disk on which an operation can be made to fail.
type faulty struct {
	vfs.FS
	op     string // that fails; "" for all
	err    syscall.Errno
	broken atomic.Bool
	hits   atomic.Int64
	again  chan struct{} // closed when it has failed twice
}

func newFaulty(disk vfs.FS, op string, err syscall.Errno) *faulty {
	f := &faulty{op: op, err: err, again: make(chan struct{})}
	f.FS = filestore.Intercept(disk, func(op, path string, run func() error) error {
		// The number of the last batch is only a check, and may fail.
		if !f.broken.Load() || f.op != "" && f.op != op || strings.HasSuffix(path, filestore.TailFile) {
			return run()
		}
		if f.hits.Add(1) == 2 {
			close(f.again)
		}
		return &fs.PathError{Op: op, Path: path, Err: f.err}
	})
	return f
}

// tasks are submitted to a store one by one.
type tasks struct {
	t     *testing.T
	store *filestore.Store
	ids   queue.IDs
	now   time.Time
}

func newTasks(t *testing.T, s *filestore.Store) *tasks {
	t.Helper()
	return &tasks{t: t, store: s, now: time.Unix(1e9, 0)}
}

func (c *tasks) submit(bytes int) error {
	_, err := c.store.Submit(c.t.Context(), c.now, []queue.NewTask{
		{ID: c.ids.New(c.now), Spec: queue.Spec{Kind: "k", Payload: make([]byte, bytes)}},
	})
	return err
}

// succeed has a task succeed that waits.
func (c *tasks) succeed() error {
	ctx := c.t.Context()
	claimed, err := c.store.Claim(ctx, c.now, queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 1, Lease: time.Hour})
	if err != nil {
		return err
	}
	t := claimed.Tasks[0]
	o := queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess}
	answers, err := c.store.Settle(ctx, c.now, []queue.Outcome{o})
	return errors.Join(append(answers, err)...)
}

// has checks how many tasks a store finds.
func (c *tasks) has(want int) {
	c.t.Helper()
	found, err := all(c.t.Context(), c.store)
	if err != nil || len(found) != want {
		c.t.Errorf("there are %d tasks, and not %d; error: %v", len(found), want, err)
	}
}

// refusesFor checks that a submit is refused, for a reason.
func (c *tasks) refusesFor(reason syscall.Errno, words string) {
	c.t.Helper()
	err := c.submit(1)
	if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, reason) || !strings.Contains(err.Error(), words) {
		c.t.Errorf("a submit says %q; want an ErrUnavailable for %q that says %q", err, reason, words)
	}
}

// TestC6_FullDisk: what is to be written waits for room, other tasks are refused,
// those that are there can be read, and all goes on by itself.
func TestC6_FullDisk(t *testing.T) {
	for _, op := range []string{filestore.OpWrite, filestore.OpCreate} {
		for _, size := range []int{100, 200 << 10} { // beyond the small database's memory
			disk := newFaulty(vfs.NewMem(), op, syscall.ENOSPC)
			c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
			if err := c.submit(size); err != nil {
				t.Fatal(err)
			}
			disk.broken.Store(true)
			waiting := make(chan error, 1)
			go func() {
				other := newTasks(t, c.store)
				var err error
				for i := 0; i < 500 && err == nil && disk.hits.Load() == 0; i++ { // a file is created now and then
					err = other.submit(size)
				}
				waiting <- err
			}()
			<-disk.again
			c.refusesFor(syscall.ENOSPC, "the disk is full")
			if _, err := all(t.Context(), c.store); err != nil {
				t.Errorf("%s, %d bytes: reading says %v", op, size, err)
			}
			disk.broken.Store(false)
			if err := <-waiting; err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s, %d bytes: with room again, the submit says %v", op, size, err)
			}
			if err := errors.Join(c.succeed(), c.submit(1)); err != nil {
				t.Errorf("%s, %d bytes: %v", op, size, err)
			}
		}
	}
}

// TestC6_FailedDisk: no more tasks are accepted, no call waits, and what was accepted
// is there when the directory is opened again, which this process may do.
func TestC6_FailedDisk(t *testing.T) {
	for _, test := range []struct {
		op  string
		err syscall.Errno
	}{
		{filestore.OpWrite, syscall.EIO},
		{filestore.OpSync, syscall.EIO},
		{filestore.OpSync, syscall.ENOSPC}, // that the sync failed is what counts
	} {
		for _, size := range []int{100, 200 << 10} {
			power := newCrashable(vfs.NewCrashableMem())
			disk := newFaulty(power, test.op, test.err)
			s, err := filestore.OpenIn(disk, "store", filestore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			c := newTasks(t, s)
			if err := c.submit(size); err != nil {
				t.Fatal(err)
			}
			disk.broken.Store(true)
			if err := c.submit(size); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, test.err) {
				t.Errorf("%s fails, %d bytes: the submit says %v", test.op, size, err)
			}
			c.refusesFor(test.err, "disk")
			if err := s.Close(); !errors.Is(err, test.err) {
				t.Errorf("%s fails, %d bytes: closing says %v", test.op, size, err)
			}
			newTasks(t, openIn(t, power.crash(), "store", filestore.Config{})).has(1)
			disk.broken.Store(false)
			openIn(t, disk, "store", filestore.Config{}) // by the same process
		}
	}
}

// TestC6_CloseOnAFullDisk: closing waits for nothing, and ends the wait of others.
func TestC6_CloseOnAFullDisk(t *testing.T) {
	power := newCrashable(vfs.NewCrashableMem())
	disk := newFaulty(power, "", syscall.ENOSPC)
	s, err := filestore.OpenIn(disk, "store", filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := newTasks(t, s)
	if err := c.submit(1); err != nil {
		t.Fatal(err)
	}
	disk.op = filestore.OpWrite
	disk.broken.Store(true)
	waiting := make(chan error, 1)
	go func() { waiting <- c.submit(1) }()
	<-disk.again
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closing says %v", err)
	}
	if err := <-waiting; !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("the submit that waited says %v", err)
	}
	newTasks(t, openIn(t, power.crash(), "store", filestore.Config{})).has(1)
}

// TestC6_NearlyFullDisk: with less room than MinFree tasks are refused, and those
// that are there go on.
func TestC6_NearlyFullDisk(t *testing.T) {
	dir := t.TempDir()
	c := newTasks(t, openDir(t, dir))
	if err := errors.Join(c.submit(1), c.store.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := filestore.Open(dir, filestore.Config{MinFree: 1 << 62})
	if err != nil {
		t.Fatal(err)
	}
	c.store = s
	err = c.submit(1)
	for _, remedy := range []string{"MiB on: make room", "MinFree in filestore.Config", "--min-free"} {
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("a submit says %v, want %q in it", err, remedy)
		}
	}
	if err := errors.Join(c.succeed(), s.Close()); err != nil {
		t.Error(err)
	}
}
