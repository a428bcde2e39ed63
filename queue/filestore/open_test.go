package filestore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// leftRunning is a disk with a store whose process was killed while it ran one of two
// tasks: opening it has something to write.
func leftRunning(t *testing.T) *crashable {
	t.Helper()
	disk := newCrashable(vfs.NewCrashableMem())
	c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
	claim := queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 1, Lease: time.Hour}
	if err := errors.Join(c.submit(100), c.submit(100)); err != nil {
		t.Fatal(err)
	}
	if claimed, err := c.store.Claim(t.Context(), c.now, claim); err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("%d tasks claimed, error %v", len(claimed.Tasks), err)
	}
	return disk.kill()
}

// TestC6_OpenFailsAnywhere: whichever operation of opening a directory fails, and all
// after it, the same process can open it when the disk is well again, and all is
// there.
func TestC6_OpenFailsAnywhere(t *testing.T) {
	for name, disk := range map[string]struct {
		make  func(t *testing.T) *crashable
		tasks int
	}{
		"a new directory": {func(*testing.T) *crashable { return newCrashable(vfs.NewCrashableMem()) }, 0},
		"one that is":     {leftRunning, 2},
	} {
		for _, reason := range []error{errBroken, errFull} {
			t.Run(fmt.Sprint(name, ", ", reason), func(t *testing.T) {
				from := disk.make(t)
				for n := 1; openFailsAt(t, from.kill(), n, reason, disk.tasks); n++ {
				}
			})
		}
	}
}

// openFailsAt makes the n-th operation of opening a store fail, and all after it, and
// reports whether opening makes at least n operations.
func openFailsAt(t *testing.T, disk *crashable, n int, reason error, tasks int) bool {
	t.Helper()
	disk.breakWith(n, reason)
	s, err := filestore.OpenIn(disk, "store", filestore.Config{MayLose: time.Hour})
	if err == nil {
		_ = s.Close()
		return false
	}
	if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, reason) {
		t.Errorf("operation %d fails, and opening says %v", n, err)
	}
	disk.breakWith(0, nil)
	again, err := filestore.OpenIn(disk, "store", filestore.Config{})
	if err != nil {
		t.Errorf("after operation %d has failed, opening it again says %v", n, err)
		return true
	}
	newTasks(t, again).has(tasks)
	if err := again.Close(); err != nil {
		t.Errorf("operation %d: closing says %v", n, err)
	}
	return true
}

// A store that was opened by a relative path stays where it is when the process changes its
// working directory.
func TestC6_RelativeDirectory(t *testing.T) {
	base, other := t.TempDir(), t.TempDir()
	t.Chdir(base)
	s, err := filestore.Open("store", filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := newTasks(t, s)
	t.Chdir(other)
	if err := errors.Join(c.submit(100), s.Compact(t.Context()), s.Copy(filepath.Join(base, "copy"))); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"store", "copy"} {
		s, err := filestore.Open(filepath.Join(base, dir), filestore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := s.Stats(t.Context(), c.now)
		if n := stats.Queues[queue.DefaultQueue].States[queue.Waiting]; err != nil || n != 1 {
			t.Errorf("%s has %d tasks, error %v, want one", dir, n, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if found, err := filepath.Glob("*"); err != nil || len(found) > 0 {
		t.Errorf("in the other directory there is %v, error %v", found, err)
	}
}
