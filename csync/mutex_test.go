package csync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
)

func ExampleMutex() {
	var (
		mu    csync.Mutex
		count int
	)
	ctx, cancel := context.WithCancel(context.Background())
	err := mu.With(ctx, func() error {
		count++
		return nil
	})
	fmt.Println(count, err)

	_ = mu.Lock(ctx) // another goroutine holds it …
	cancel()         // … and this one gives up
	fmt.Println(mu.Lock(ctx))
	// Output:
	// 1 <nil>
	// context canceled
}

// oneAtATime admits the first in the queue while less than total is held. With
// a total of 1 it is the rule of a mutex.
func oneAtATime(total int) func(*lockModel, bool) int {
	return func(m *lockModel, _ bool) int {
		sum := 0
		for _, e := range m.held {
			sum += e.kind
		}
		if len(m.queue) > 0 && sum+m.queue[0].kind <= total {
			return 0
		}
		return -1
	}
}

func TestD1_MutexModel(t *testing.T) {
	var mu csync.Mutex
	testLock(t, 20_000, lock{
		acquire: func(ctx context.Context, _ int) error { return mu.Lock(ctx) },
		try:     func(int) bool { return mu.TryLock() },
		release: func(int) { mu.Unlock() },
		kind:    func(*rand.Rand) int { return 1 },
	}, &lockModel{next: oneAtATime(1)})
}

func TestD1_MutexHandsOverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu    csync.Mutex
			order []int
			wg    sync.WaitGroup
		)
		_ = mu.Lock(t.Context())
		for i := range 100 {
			wg.Go(func() {
				_ = mu.Lock(t.Context())
				order = append(order, i)
				mu.Unlock()
			})
			synctest.Wait()
		}
		mu.Unlock()
		if mu.TryLock() {
			t.Error("TryLock barged in between the hand-overs")
		}
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
	})
}

func TestD1_MutexUnlockOfUnlockedPanics(t *testing.T) {
	var mu csync.Mutex
	mustPanic(t, "csync: Unlock of an unlocked Mutex", mu.Unlock)
	if !mu.TryLock() {
		t.Error("the panic left the mutex locked")
	}
}

func TestD1_MutexRefusesEndedContext(t *testing.T) {
	var mu csync.Mutex
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	if err := mu.Lock(ctx); !errors.Is(err, errLeft) {
		t.Errorf("Lock: %v, want the cause", err)
	}
	if !mu.TryLock() {
		t.Error("locked by a call that was refused")
	}
}

// scoped is a scoped form, and whether its lock is free.
type scoped struct {
	name string
	with func(context.Context, func() error) error
	free func() bool
}

func TestD1_ScopedFormsRelease(t *testing.T) {
	var (
		mu  csync.Mutex
		rw  csync.RWMutex
		sem = csync.NewSemaphore(3)
	)
	unlocked := func() bool {
		if rw.TryLock() {
			rw.Unlock()
			return true
		}
		return false
	}
	for _, form := range []scoped{
		{"Mutex.With", mu.With, func() bool { return mu.TryLock() && func() bool { mu.Unlock(); return true }() }},
		{"RWMutex.With", rw.With, unlocked},
		{"RWMutex.RWith", rw.RWith, unlocked},
		{
			"Semaphore.With",
			func(ctx context.Context, fn func() error) error { return sem.With(ctx, 2, fn) },
			func() bool { return sem.Available() == 3 },
		},
	} {
		t.Run(form.name, func(t *testing.T) { testScoped(t, form) })
	}
}

func testScoped(t *testing.T, form scoped) {
	t.Helper()
	ends := map[string]func() error{
		"nil":    func() error { return nil },
		"error":  func() error { return errLeft },
		"panic":  func() error { panic("boom") },
		"goexit": func() error { runtime.Goexit(); return nil },
	}
	for name, end := range ends {
		var err error
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			err = form.with(t.Context(), func() error {
				if form.free() {
					t.Errorf("%s: not held inside", name)
				}
				return end()
			})
		}()
		if got := <-done; (got != nil) != (name == "panic") {
			t.Errorf("%s: recovered %v", name, got)
		}
		if (err != nil) != (name == "error") {
			t.Errorf("%s: error %v", name, err)
		}
		if !form.free() {
			t.Errorf("%s: still held", name)
		}
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	err := form.with(ctx, func() error { t.Error("called without the lock"); return nil })
	if !errors.Is(err, errLeft) || !form.free() {
		t.Errorf("ended context: error %v, want its cause", err)
	}
}

// TestD1_MutexStress races real goroutines, some of which give up,
// and counts without any other protection.
func TestD1_MutexStress(t *testing.T) {
	var (
		mu       csync.Mutex
		inside   int
		entered  int
		returned = make([]int, 8)
		wg       sync.WaitGroup
	)
	for g := range returned {
		wg.Go(func() {
			for i := range 3000 {
				if err := lockOrGiveUp(&mu, i%3 == 0); err != nil {
					continue
				}
				inside++
				if inside != 1 {
					t.Errorf("%d inside", inside)
				}
				entered++
				inside--
				mu.Unlock()
				returned[g]++
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range returned {
		sum += n
	}
	if entered != sum || !mu.TryLock() {
		t.Errorf("entered %d, returned %d", entered, sum)
	}
}

// lockOrGiveUp locks mu with a context that, if hasty, ends at about the same
// time as the lock is handed over.
func lockOrGiveUp(mu *csync.Mutex, hasty bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if hasty {
		go func() {
			runtime.Gosched()
			cancel()
		}()
	}
	return mu.Lock(ctx)
}

func mustPanic(t *testing.T, want string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panicked with %v, want %q", got, want)
		}
	}()
	fn()
}

func TestD1_MutexAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu csync.Mutex
	if n := testing.AllocsPerRun(1000, func() {
		_ = mu.Lock(ctx)
		mu.Unlock()
	}); n != 0 {
		t.Errorf("free: %v allocs", n)
	}

	turns := make(chan struct{})
	go func() { // a second goroutine, so that each Lock waits
		for range turns {
			_ = mu.Lock(ctx)
			turns <- struct{}{}
			runtime.Gosched()
			mu.Unlock()
		}
	}()
	if n := testing.AllocsPerRun(1000, func() {
		turns <- struct{}{}
		<-turns
		_ = mu.Lock(ctx)
		mu.Unlock()
	}); n != 0 {
		t.Errorf("handed over: %v allocs", n)
	}
	close(turns)
}

func BenchmarkMutex(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var mu csync.Mutex
	b.ReportAllocs()
	for b.Loop() {
		_ = mu.Lock(ctx)
		mu.Unlock()
	}
}

func BenchmarkMutexContended(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var mu csync.Mutex
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = mu.Lock(ctx)
			mu.Unlock()
		}
	})
}
