//go:build linux

package arena_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// Opening a file that is replaced again and again ends: all attempts share one patience.
func TestB8_ArenaIsReplacedForever(t *testing.T) {
	const patience = time.Millisecond
	before := patience
	err := arena.WhileReplaced(patience, func(left time.Duration) error {
		if left < 0 || left > before {
			t.Errorf("%v are left, after %v", left, before)
		}
		before = left
		return arena.ErrReplaced
	})
	if !errors.Is(err, arena.ErrReplaced) || before != 0 {
		t.Errorf("it ended with %v when %v were left", err, before)
	}
	tries := 0
	err = arena.WhileReplaced(0, func(time.Duration) error {
		if tries++; tries == 1 {
			return arena.ErrReplaced // replaced by this call, as the file did not fit
		}
		return nil
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d attempts without patience: %v", tries, err)
	}
}

// A path that can no longer be read is an error, and is not taken for a file that was
// replaced.
func TestB8_ArenaPathFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	path := filepath.Join(dir, "region")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	_, err := arena.Open(t.Context(), path, layout, patience, func(*arena.Arena) error {
		go func() {
			_, err := tryOpen(path, layout)
			failed <- err
		}()
		for opened(t, path) < 2 {
			runtime.Gosched()
		}
		if err := os.Rename(dir, dir+" of before"); err != nil {
			return err
		}
		return os.WriteFile(dir, nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = <-failed
	if !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), ": stat ") {
		t.Errorf("opened: %v, want the error of looking at the path", err)
	}
}

// opened is how many descriptors this process has of a file.
func opened(t *testing.T, path string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == path {
			n++
		}
	}
	return n
}
