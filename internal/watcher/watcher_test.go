//go:build linux

package watcher_test

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stintgo/stint/internal/watcher"
)

// If the process cannot be started, failed is called and the jobs can run without it.
func TestStart_NoProgram(t *testing.T) {
	failed := make(chan error, 1)
	w := watcher.Start("/no/such/program", "run", nil, func(err error) { failed <- err })
	w.Started()
	select {
	case err := <-failed:
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("failed with %v", err)
		}
	default:
		t.Error("Started returned before failed was called")
	}
	w.Cell(1, 1).Store(1)
	w.Stop()
}

// If no descriptor is left there is no table either: failed is called, and the jobs can
// run without it.
func TestStart_NoDescriptors(t *testing.T) {
	var had syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	none := syscall.Rlimit{Cur: 0, Max: had.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	var failed error
	w := watcher.Start("/no/such/program", "run", nil, func(err error) { failed = err })
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &had); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(failed, syscall.EMFILE) || w.Cell(1, 1) != nil {
		t.Errorf("failed with %v, cell %v", failed, w.Cell(1, 1))
	}
	w.Stop()
}

// A run that ends at once does not start the process, nor wait for one. Slots
// beyond the table have no cell.
func TestStop_AtOnce(t *testing.T) {
	w := watcher.Start("/no/such/program", "run", nil, func(error) {}) // on a busy machine it is tried
	if w.Cell(1, 1) == nil || w.Cell(1, 1) == w.Cell(2, 2) || w.Cell(1<<14, 1) == nil || w.Cell(1<<14+1, 1) != nil {
		t.Error("want a cell for each of the slots 1 to 16384")
	}
	w.Stop()
}
