package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// TestC6_Copy: a copy that is made while tasks come and go has all that was
// accepted before, and opens as a store of its own.
func TestC6_Copy(t *testing.T) {
	dir, to := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "backups", "monday")
	store := openDir(t, dir)
	c := newTasks(t, store)
	const before = 200
	for range before {
		if err := c.submit(100); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.succeed(); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for more := newTasks(t, store); ; {
			select {
			case <-stop:
				return
			default:
			}
			if err := more.submit(100); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if err := store.Copy(to); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the copy is for others to read: %v, %v", info.Mode(), err)
	}
	copied := openDir(t, to) // beside the other
	close(stop)
	others.Wait()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := copied.Command(t.Context(), c.now.Add(time.Hour), queue.Command{Do: queue.OrderCancel, All: true})
	if err != nil || n < before-1 {
		t.Errorf("the copy has %d tasks to cancel, of %d, %v", n, before-1, err)
	}
	succeeded := queue.Filter{States: []queue.State{queue.Succeeded}}
	if done, err := copied.Find(t.Context(), succeeded, queue.Page{}); err != nil || len(done) != 1 {
		t.Errorf("of 1 task that has succeeded the copy has %d, %v", len(done), err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestC6_CopyFails: a copy that cannot be made says why, and the store goes on.
func TestC6_CopyFails(t *testing.T) {
	mem := vfs.NewMem()
	full := filestore.Intercept(mem, func(op, path string, run func() error) error {
		if op == filestore.OpWrite && strings.HasPrefix(path, "elsewhere/copy") {
			return syscall.ENOSPC
		}
		return run()
	})
	store := openIn(t, full, "store", filestore.Config{})
	c := newTasks(t, store)
	for _, test := range []struct {
		to   string
		want error
		says string
	}{
		{"store/copy", queue.ErrInvalid, "inside the store"},
		{"store", queue.ErrInvalid, "choose another directory"},
		{"elsewhere/copy", syscall.ENOSPC, "copy the store in store"},
	} {
		if err := c.submit(100); err != nil {
			t.Fatal(err)
		}
		if err := store.Copy(test.to); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("a copy to %s: %v; want %q and %v", test.to, err, test.says, test.want)
		}
	}
	c.has(3)
	if _, err := mem.Stat("elsewhere/copy"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part of the copy is left: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Copy("late"); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("a copy of a closed store: %v", err)
	}
}

// TestC6_CopyInside: no copy is made inside the store, however its path is written.
func TestC6_CopyInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store := openDir(t, dir)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{
		filepath.Join(dir, "copy"), filepath.Join(dir, "deep", "copy"), filepath.Join(relative, "copy"),
	} {
		if err := store.Copy(to); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a copy in %s says %v", to, err)
		}
	}
	if err := errors.Join(store.Copy(dir+"-2"), store.Close()); err != nil {
		t.Error(err)
	}
}
