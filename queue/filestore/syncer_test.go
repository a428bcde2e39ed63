package filestore_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// TestC6_MayLose: a store that may lose the latest past syncs what is older, and
// only such a store loses anything.
func TestC6_MayLose(t *testing.T) {
	const limit = 50 * time.Millisecond
	for _, test := range []struct {
		name    string
		mayLose time.Duration
		passes  time.Duration // between the last task and the crash
		left    int           // of two tasks
	}{
		{"nothing may be lost", 0, 0, 2},
		{"a crash at once", limit, 0, 1},
		{"a crash just before", limit, limit - 1, 1},
		{"a crash in time", limit, limit, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := newCrashable(vfs.NewCrashableMem())
				c := newTasks(t, openIn(t, disk, "store", filestore.Config{MayLose: test.mayLose}))
				for _, pause := range []time.Duration{time.Second, test.passes} {
					if err := c.submit(100); err != nil {
						t.Fatal(err)
					}
					time.Sleep(pause)
					synctest.Wait()
				}
				again := newTasks(t, openIn(t, disk.crash(), "store", filestore.Config{}))
				again.has(test.left)
			})
		})
	}
}

// TestC6_MayLoseCloses: closing loses nothing.
func TestC6_MayLoseCloses(t *testing.T) {
	disk := newCrashable(vfs.NewCrashableMem())
	store, err := filestore.OpenIn(disk, "store", filestore.Config{MayLose: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := newTasks(t, store).submit(100); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	newTasks(t, openIn(t, disk.crash(), "store", filestore.Config{})).has(1)
}

// TestC6_MayLoseOnAFullDisk: changes that cannot be synced are refused after a while, since a
// crash would undo all that are accepted until there is room.
func TestC6_MayLoseOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newFaulty(vfs.NewMem(), filestore.OpWrite, syscall.ENOSPC)
		c := newTasks(t, openIn(t, disk, "store", filestore.Config{MayLose: 50 * time.Millisecond}))
		pause := func() error { return c.store.PauseQueue(t.Context(), c.now, "q", &queue.Pause{}) }
		disk.broken.Store(true)
		if err := pause(); err != nil {
			t.Error("at once:", err)
		}
		time.Sleep(5 * time.Second)
		if err := pause(); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("after 5 s the error is %v, want ErrUnavailable", err)
		}
		disk.broken.Store(false)
		time.Sleep(time.Second)
		if err := pause(); err != nil {
			t.Error("with room:", err)
		}
	})
}
