package csync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
)

func ExampleSemaphore() {
	memory := csync.NewSemaphore(100)
	ctx := context.Background()

	err := memory.With(ctx, 80, func() error {
		fmt.Println("free:", memory.Available(), "of", memory.Total())
		fmt.Println("30 more at once:", memory.TryAcquire(30))
		return nil
	})
	fmt.Println(err)
	fmt.Println(memory.Acquire(ctx, 101))
	// Output:
	// free: 20 of 100
	// 30 more at once: false
	// <nil>
	// csync: weight is above the semaphore's total: acquire 101 of 100
}

func TestD2_SemaphoreModel(t *testing.T) {
	const total = 10
	sem := csync.NewSemaphore(total)
	testLock(t, 20_000, lock{
		acquire: func(ctx context.Context, n int) error { return sem.Acquire(ctx, int64(n)) },
		try:     func(n int) bool { return sem.TryAcquire(int64(n)) },
		release: func(n int) { sem.Release(int64(n)) },
		kind: func(r *rand.Rand) int {
			if r.IntN(3) == 0 {
				return r.IntN(total + 1)
			}
			return r.IntN(4)
		},
		check: func(t *testing.T, m *lockModel) {
			t.Helper()
			free := int64(total)
			for _, e := range m.held {
				free -= int64(e.kind)
			}
			if got := sem.Available(); got != free {
				t.Fatalf("Available() = %d, want %d", got, free)
			}
			if got := sem.Waiting(); got != len(m.queue) {
				t.Fatalf("Waiting() = %d, want %d", got, len(m.queue))
			}
		},
	}, &lockModel{next: oneAtATime(total)})
}

func TestD2_SemaphoreWeightAboveTotalIsError(t *testing.T) {
	sem := csync.NewSemaphore(5)
	if err := sem.Acquire(t.Context(), 6); !errors.Is(err, csync.ErrTooHeavy) {
		t.Errorf("Acquire(6) of 5: %v, want ErrTooHeavy", err)
	}
	if sem.TryAcquire(6) || sem.Available() != 5 {
		t.Error("TryAcquire(6) of 5 took something")
	}
	var zero csync.Semaphore
	if err := zero.Acquire(t.Context(), 1); !errors.Is(err, csync.ErrTooHeavy) {
		t.Errorf("zero value: %v, want ErrTooHeavy", err)
	}
}

func TestD2_SemaphoreNeverPassesTheHeadOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sem := csync.NewSemaphore(10)
		_ = sem.Acquire(t.Context(), 1)
		heavy, leave := context.WithCancelCause(t.Context())
		done := make(chan string, 2)
		go func() {
			if sem.Acquire(heavy, 10) != nil {
				done <- "heavy left"
			}
		}()
		synctest.Wait()
		go func() {
			_ = sem.Acquire(t.Context(), 1)
			done <- "light"
		}()
		synctest.Wait()
		if sem.TryAcquire(1) || sem.TryAcquire(0) || len(done) > 0 {
			t.Error("the heavy head was passed over")
		}
		if sem.Available() != 9 || sem.Waiting() != 2 {
			t.Errorf("available %d, waiting %d; want 9, 2", sem.Available(), sem.Waiting())
		}
		leave(errLeft)
		if got := <-done + ", " + <-done; got != "heavy left, light" && got != "light, heavy left" {
			t.Errorf("after the head left: %s", got)
		}
	})
}

func TestD2_SemaphorePanics(t *testing.T) {
	sem := csync.NewSemaphore(5)
	_ = sem.Acquire(t.Context(), 2)
	mustPanic(t, "csync: Release(3) of a Semaphore of which less is held", func() { sem.Release(3) })
	negative := "csync: a semaphore's weight of -1; use 0 or more"
	mustPanic(t, negative, func() { _ = sem.Acquire(t.Context(), -1) })
	mustPanic(t, negative, func() { sem.TryAcquire(-1) })
	mustPanic(t, negative, func() { sem.Release(-1) })
	mustPanic(t, negative, func() { csync.NewSemaphore(-1) })
	if sem.Available() != 3 {
		t.Errorf("available %d after the panics, want 3", sem.Available())
	}
}

// TestD2_SemaphorePanicsWhileOthersWait releases too much on the slow path, where
// the state is taken apart before it is looked at.
func TestD2_SemaphorePanicsWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sem := csync.NewSemaphore(5)
		_ = sem.Acquire(t.Context(), 2)
		go func() { _ = sem.Acquire(t.Context(), 5) }()
		synctest.Wait()
		mustPanic(t, "csync: Release(3) of a Semaphore of which less is held", func() { sem.Release(3) })
		if sem.Waiting() != 1 {
			t.Errorf("waiting %d, want 1", sem.Waiting())
		}
		sem.Release(2)
		synctest.Wait()
		if sem.Available() != 0 || sem.Waiting() != 0 {
			t.Errorf("available %d, waiting %d; want 0, 0", sem.Available(), sem.Waiting())
		}
	})
}

func TestD2_SemaphoreForgetsARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sem := csync.NewSemaphore(1)
		_ = sem.Acquire(t.Context(), 1)
		for range 10 * csync.MaxSpare {
			go func() { _ = sem.With(t.Context(), 1, func() error { return nil }) }()
		}
		synctest.Wait()
		sem.Release(1)
		synctest.Wait()
		if n := sem.Spares(); n != csync.MaxSpare {
			t.Errorf("%d waiters are kept, want %d", n, csync.MaxSpare)
		}
	})
}

func BenchmarkSemaphore(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	sem := csync.NewSemaphore(10)
	b.ReportAllocs()
	for b.Loop() {
		_ = sem.Acquire(ctx, 3)
		sem.Release(3)
	}
}
