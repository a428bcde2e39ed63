//go:build linux

package shm_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// runs reports whether a goroutine is in the given function of package shm.
func runs(function string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "shm.(*Region)."+function+"(")
}

// lone is a region's only slot, which another region holds, and one goroutine that waits
// for it.
type lone struct {
	holder stint.Scheduler // of the other region
	held   *stint.Permit   // of holder
	waiter stint.Scheduler
	region *shm.Region // of waiter
	wait   *pending    // of waiter
}

// alone calls wait, which begins a call of Acquire, and returns once that call waits.
func alone(t *testing.T, wait func(stint.Scheduler) *pending) (s lone) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "region")
	s.holder = stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	s.held = mustTry(t, s.holder)
	s.region = open(t, path, one)
	s.waiter = stint.New(2, stint.Config{Slots: s.region.Slots(0)})
	s.wait = wait(s.waiter)
	until(t, "the caller does not sleep in its own goroutine", func() bool {
		return s.region.Waiting() == 1 && runs("watchUntil")
	})
	if runs("watchOver") {
		t.Error("another goroutine waits for the caller")
	}
	return s
}

// A caller that waits alone in its process sleeps in its own goroutine, without a second
// one. It continues when it has the slot, when its context ends and when the region is
// closed.
func TestB8_LoneCaller(t *testing.T) {
	enough := errors.New("enough")
	for name, end := range map[string]func(s lone, cancel context.CancelCauseFunc) error{
		"served":        func(s lone, _ context.CancelCauseFunc) error { s.held.Release(); return nil },
		"canceled":      func(_ lone, cancel context.CancelCauseFunc) error { cancel(enough); return enough },
		"closed region": func(s lone, _ context.CancelCauseFunc) error { s.region.Close(); return shm.ErrClosed },
		"cleared queue": func(s lone, _ context.CancelCauseFunc) error { s.waiter.Clear(); return stint.ErrCleared },
		"no capacity":   func(s lone, _ context.CancelCauseFunc) error { s.waiter.Resize(0); return stint.ErrNoCapacity },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := alone(t, func(s stint.Scheduler) *pending { return goAcquire(ctx, s) })
			if want, err := end(s, cancel), <-s.wait.answer; !errors.Is(err, want) {
				t.Errorf("the wait ended with %v, want %v", err, want)
			}
			if runs("watchUntil") || runs("watchOver") {
				t.Error("a watcher runs without waiters")
			}
		})
	}
}

// Many waits of one context all end with it, as one wait does: the scheduler observes
// such a context in another way.
func TestB8_LoneCallerOfOneContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	holder := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	r := open(t, path, one)
	s := stint.New(1, stint.Config{Slots: r.Slots(0)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 5 {
		held := mustTry(t, holder)
		wait := goAcquire(ctx, s)
		until(t, "no caller waits", func() bool { return r.Waiting() == 1 && runs("watchUntil") })
		if i == 4 {
			cancel()
			if err := <-wait.answer; !errors.Is(err, context.Canceled) {
				t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
			}
			return
		}
		held.Release()
		if err := <-wait.answer; err != nil {
			t.Fatal(err)
		}
		wait.permit.Release()
	}
}

// A second caller that arrives while the first sleeps is served before it if its tier is
// higher, and after it otherwise, and is served also if the first stops waiting.
func TestB8_SecondCallerJoins(t *testing.T) {
	for name, tier := range map[string]stint.Priority{"above": stint.High, "equal": stint.Normal} {
		t.Run(name, func(t *testing.T) {
			s := alone(t, func(s stint.Scheduler) *pending { return goAcquire(t.Context(), s) })
			ahead, behind := s.wait, goAcquire(t.Context(), s.waiter.At(tier))
			until(t, "the second does not wait", func() bool { return s.region.Waiting() == 2 })
			if tier > stint.Normal {
				ahead, behind = behind, ahead
			}
			s.held.Release()
			if err := <-ahead.answer; err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-behind.answer:
				t.Fatalf("the later caller was served as well: %v", err)
			default:
			}
			other := goAcquire(t.Context(), s.holder)
			until(t, "the other process does not wait", func() bool { return s.region.Slots(0).Usage().Waiting == 2 })
			ahead.permit.Release()
			if err := <-behind.answer; err != nil {
				t.Fatal(err)
			}
			behind.permit.Release()
			if err := <-other.answer; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the first is canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := alone(t, func(s stint.Scheduler) *pending { return goAcquire(ctx, s) })
		second := goAcquire(t.Context(), s.waiter)
		until(t, "the second does not wait", func() bool { return s.region.Waiting() == 2 })
		cancel()
		if err := <-s.wait.answer; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
		}
		until(t, "no goroutine sleeps for the second", func() bool { return runs("watchOver") })
		s.held.Release()
		if err := <-second.answer; err != nil {
			t.Error(err)
		}
	})
}
