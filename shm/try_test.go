//go:build linux

package shm_test

import (
	"path/filepath"
	"testing"

	"github.com/stintgo/stint"
)

// A caller that only tries gets the slot of a dead process at once, although without
// waiters no watcher looks for the dead.
func TestB8_TryAfterADeath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	tries := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	holdOne(t, path).kill()
	if _, ok := tries.TryAcquire(t.Context()); !ok {
		t.Error("a slot that a dead process had was refused")
	}
}

// The same if the slot was granted to a dead waiter.
func TestB8_TryAfterADeadWaiter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	slots := punctual(t, path, one)
	s, tries := stint.New(1, stint.Config{Slots: slots}), stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	p := mustTry(t, s)
	waiter := start(t, "hold one", path)
	until(t, "the process does not wait", func() bool { return slots.Usage().Waiting == 1 })
	waiter.kill()
	p.Release()
	if _, ok := tries.TryAcquire(t.Context()); !ok {
		t.Error("a slot that was granted to a dead process was refused")
	}
}
