//go:build !linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Arena does not exist on this system.
type Arena struct{}

// Open fails with [errors.ErrUnsupported].
func Open(context.Context, string, Layout, time.Duration, func(*Arena) error) (*Arena, error) {
	return nil, unsupported()
}

func unsupported() error {
	return fmt.Errorf("shared memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Look fails with [errors.ErrUnsupported].
func Look(string) (*Arena, error) { return nil, unsupported() }

// Remove fails with [errors.ErrUnsupported].
func Remove(string, time.Duration) error { return unsupported() }

// MakePrivate fails with [errors.ErrUnsupported].
func MakePrivate() (string, error) { return "", unsupported() }

// Private fails with [errors.ErrUnsupported].
func Private() (string, error) { return "", unsupported() }

// Words returns nil.
func (*Arena) Words() []uint64 { return nil }

// Identity returns zeros.
func (*Arena) Identity() [2]uint64 { return [2]uint64{} }

// Lock reports false.
func (*Arena) Lock(int) bool { return false }

// Unlock does nothing.
func (*Arena) Unlock(int) {}

// Held reports false.
func (*Arena) Held(int) bool { return false }

// Sleep returns at once.
func (*Arena) Sleep(*uint64, uint64, time.Duration) {}

// Wake does nothing.
func (*Arena) Wake(*uint64) {}

// Geometry returns nil.
func (*Arena) Geometry() []uint64 { return nil }

// KeepOnExec does nothing.
func (*Arena) KeepOnExec() error { return nil }

// File fails with [errors.ErrUnsupported].
func (*Arena) File() (*os.File, error) { return nil, unsupported() }

// Close does nothing.
func (*Arena) Close() error { return nil }

// OnExit fails with [errors.ErrUnsupported].
func OnExit(int, func()) (stop func(), err error) { return nil, unsupported() }

// Stopped reports false.
func (*Arena) Stopped(int) bool { return false }

// Keeper does not exist on this system.
type Keeper struct {
	PID     int
	Name    string
	Numbers []int
}

// Holds reports that the answer is unknown.
func (*Arena) Holds(int, int) (holds, known bool) { return false, false }

// Ended reports false.
func Ended(int) bool { return false }

// Keepers returns nil.
func (*Arena) Keepers() map[int][]Keeper { return nil }

// SeesAll reports false.
func SeesAll() bool { return false }

// Now returns 0.
func Now() int64 { return 0 }
