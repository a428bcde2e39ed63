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

// runs reports whether some goroutine is in a function of package shm.
func runs(function string) bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "shm.(*Region)."+function+"(")
}

// alone has one goroutine wait for the only slot of a region, which another region holds.
func alone(t *testing.T, wait func(stint.Scheduler) error) (
	holder, s stint.Scheduler, r *shm.Region, answer <-chan error,
) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "region")
	holder = stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	if !holder.TryAcquire() {
		t.Fatal("a free slot was refused")
	}
	r = open(t, path, one)
	s = stint.New(2, stint.Config{Slots: r.Slots(0)})
	acquired := make(chan error, 1)
	go func() { acquired <- wait(s) }()
	until(t, "the caller does not sleep itself", func() bool { return r.Waiting() == 1 && runs("watchUntil") })
	if runs("watchOver") {
		t.Error("there is another goroutine that waits for it")
	}
	return holder, s, r, acquired
}

// A caller that waits alone in its process sleeps itself, and nobody for it. It goes on when
// it has the slot, when its context ends and when the region is closed.
func TestB8_LoneCaller(t *testing.T) {
	enough := errors.New("enough")
	type scene struct {
		holder, waiter stint.Scheduler
		region         *shm.Region
		cancel         context.CancelCauseFunc
	}
	for name, end := range map[string]func(scene) error{
		"served":        func(s scene) error { s.holder.Release(); return nil },
		"canceled":      func(s scene) error { s.cancel(enough); return enough },
		"closed region": func(s scene) error { s.region.Close(); return shm.ErrClosed },
		"cleared queue": func(s scene) error { s.waiter.Clear(); return stint.ErrCleared },
		"no capacity":   func(s scene) error { s.waiter.Resize(0); return stint.ErrNoCapacity },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			holder, s, r, answer := alone(t, func(s stint.Scheduler) error { return s.Acquire(ctx) })
			if want, err := end(scene{holder, s, r, cancel}), <-answer; !errors.Is(err, want) {
				t.Errorf("the wait ended with %v, want %v", err, want)
			}
			if runs("watchUntil") || runs("watchOver") {
				t.Error("somebody sleeps for nobody")
			}
		})
	}
}

// Many waits of one context are ended by it as one is: it is watched in another way then.
func TestB8_LoneCallerOfOneContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	holder := stint.New(1, stint.Config{Slots: punctual(t, path, one)})
	r := open(t, path, one)
	s := stint.New(1, stint.Config{Slots: r.Slots(0)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 5 {
		if !holder.TryAcquire() {
			t.Fatal("a free slot was refused")
		}
		answer := make(chan error, 1)
		go func() { answer <- s.Acquire(ctx) }()
		until(t, "nobody waits", func() bool { return r.Waiting() == 1 && runs("watchUntil") })
		if i == 4 {
			cancel()
			if err := <-answer; !errors.Is(err, context.Canceled) {
				t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
			}
			return
		}
		holder.Release()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		s.Release()
	}
}

// A second caller that comes while the first sleeps goes before it if its tier is higher,
// and after it otherwise, and is served also if the first waits no longer.
func TestB8_SecondCallerJoins(t *testing.T) {
	for name, tier := range map[string]stint.Priority{"above": stint.High, "equal": stint.Normal} {
		t.Run(name, func(t *testing.T) {
			holder, s, r, sleeps := alone(t, func(s stint.Scheduler) error { return s.Acquire(t.Context()) })
			joins := make(chan error, 1)
			go func() { joins <- s.At(tier).Acquire(t.Context()) }()
			until(t, "the second does not wait", func() bool { return r.Waiting() == 2 })
			var ahead, behind <-chan error = sleeps, joins
			if tier > stint.Normal {
				ahead, behind = joins, sleeps
			}
			holder.Release()
			if err := <-ahead; err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-behind:
				t.Fatalf("the one that is behind was served as well: %v", err)
			default:
			}
			other := make(chan error, 1)
			go func() { other <- holder.Acquire(t.Context()) }()
			until(t, "the other process does not wait", func() bool { return r.Slots(0).Usage().Waiting == 2 })
			s.Release()
			if err := <-behind; err != nil {
				t.Fatal(err)
			}
			s.Release()
			if err := <-other; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the first is canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		holder, s, r, first := alone(t, func(s stint.Scheduler) error { return s.Acquire(ctx) })
		second := make(chan error, 1)
		go func() { second <- s.Acquire(t.Context()) }()
		until(t, "the second does not wait", func() bool { return r.Waiting() == 2 })
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
		}
		until(t, "nobody sleeps for the second", func() bool { return runs("watchOver") })
		holder.Release()
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}
