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

// Now returns 0.
func Now() int64 { return 0 }

// Sleep returns at once.
func Sleep(*uint64, uint64, time.Duration) {}

// Wake does nothing.
func Wake(*uint64) {}

// OnExit fails with [errors.ErrUnsupported].
func OnExit(int, func()) (stop func(), err error) { return nil, unsupported() }

// Ended reports false.
func Ended(int) bool { return false }

// SeesAll reports false.
func SeesAll() bool { return false }

// File does not exist on this system.
type File struct{ Identity Identity }

// KeepOnExec does nothing.
func (*File) KeepOnExec() error { return nil }

// Dup fails with [errors.ErrUnsupported].
func (*File) Dup() (*os.File, error) { return nil, unsupported() }

// Close does nothing.
func (*File) Close() error { return nil }

// Locks do not exist on this system.
type Locks struct{}

// Lock reports false.
func (Locks) Lock(int) bool { return false }

// Unlock does nothing.
func (Locks) Unlock(int) {}

// Held reports false.
func (Locks) Held(int) bool { return false }

// Proc does not exist on this system.
type Proc struct{}

// Holds reports that the answer is unknown.
func (Proc) Holds(int, int) (holds, known bool) { return false, false }

// Keepers returns nil.
func (Proc) Keepers() map[int][]Keeper { return nil }

// Stopped reports false.
func (Proc) Stopped(int) bool { return false }

// Keeper does not exist on this system.
type Keeper struct {
	PID     int
	Name    string
	Numbers []int
}
