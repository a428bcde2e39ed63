//go:build linux

package region_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/cmd/stint/internal/region"
	"github.com/stintgo/stint/shm"
)

// Open of slots that a stopped process is opening says so, also if its context has ended before
// the first try.
func TestB8_OpenAfterTheDeadline(t *testing.T) {
	spec := region.Spec{Name: filepath.Join(t.TempDir(), "slots"), Max: 1}
	r, err := spec.Open(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	file, err := os.OpenFile(spec.Name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const making = 1<<40 - 1 // the byte that a process locks while it opens them
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: making, Len: 1}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), -time.Second)
	defer stop()
	_, err = spec.Open(ctx, func() {})
	if !errors.Is(err, shm.ErrStuck) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, want that of the deadline and ErrStuck", err)
	}
}
