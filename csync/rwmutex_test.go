package csync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
)

func ExampleRWMutex() {
	var (
		rw    csync.RWMutex
		names = map[string]int{}
	)
	ctx := context.Background()
	_ = rw.With(ctx, func() error { // alone
		names["a"] = 1
		return nil
	})
	_ = rw.RWith(ctx, func() error { // together with other readers
		fmt.Println(names["a"])
		fmt.Println("another reader:", rw.TryRLock(), "a writer:", rw.TryLock())
		return nil
	})
	// Output:
	// 1
	// another reader: true a writer: false
}

// The kinds of an RWMutex's calls in the model. They differ from all weights that the
// model of TestD2 uses, so that it can distinguish a release.
const (
	reader = -1
	writer = -2
)

func isWriter(e entry) bool { return e.kind == writer }
func isReader(e entry) bool { return e.kind == reader }

// phaseFair is the rule of an RWMutex.
func phaseFair(m *lockModel, afterWriter bool) int {
	switch firstWriter := slices.IndexFunc(m.queue, isWriter); {
	case slices.ContainsFunc(m.held, isWriter):
		return -1
	case slices.ContainsFunc(m.queue, isReader) && (afterWriter || firstWriter < 0):
		return slices.IndexFunc(m.queue, isReader)
	case len(m.held) == 0:
		return firstWriter
	default:
		return -1
	}
}

func rwLock(rw *csync.RWMutex) lock {
	return lock{
		acquire: func(ctx context.Context, kind int) error {
			if kind == writer {
				return rw.Lock(ctx)
			}
			return rw.RLock(ctx)
		},
		try: func(kind int) bool {
			if kind == writer {
				return rw.TryLock()
			}
			return rw.TryRLock()
		},
		release: func(kind int) {
			if kind == writer {
				rw.Unlock()
			} else {
				rw.RUnlock()
			}
		},
		kind: func(r *rand.Rand) int {
			if r.IntN(3) == 0 {
				return writer
			}
			return reader
		},
	}
}

func TestD3_RWMutexModel(t *testing.T) {
	var rw csync.RWMutex
	testLock(t, 20_000, rwLock(&rw), &lockModel{next: phaseFair})
}

// TestD3_RWMutexNeitherSideStarves checks the bounds that the documentation
// states, on the waits of 20,000 random steps: a reader sees at most one writer
// admitted before it, and a writer at most the writers that were there first,
// and one phase of reading more than those.
func TestD3_RWMutexNeitherSideStarves(t *testing.T) {
	var rw csync.RWMutex
	testLock(t, 20_000, rwLock(&rw), &lockModel{next: phaseFair, bound: waitsBounded})
}

func waitsBounded(e entry) error {
	switch {
	case isReader(e) && e.writersPassed > 1:
		return fmt.Errorf("reader %d waited for %d writers", e.id, e.writersPassed)
	case isWriter(e) && e.writersPassed > e.writersAhead:
		return fmt.Errorf("writer %d waited for %d writers, %d were ahead", e.id, e.writersPassed, e.writersAhead)
	case isWriter(e) && e.phasesPassed > e.writersAhead+1:
		return fmt.Errorf("writer %d waited for %d phases of reading, %d writers were ahead",
			e.id, e.phasesPassed, e.writersAhead)
	}
	return nil
}

func TestD3_RWMutexWaitingWriterHoldsNewReadersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rw csync.RWMutex
		_ = rw.RLock(t.Context())
		ctx, leave := context.WithCancelCause(t.Context())
		left := make(chan error)
		go func() { left <- rw.Lock(ctx) }()
		synctest.Wait()
		if rw.TryRLock() {
			t.Fatal("a reader passed a waiting writer")
		}
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() { _ = rw.RLock(t.Context()) })
		}
		synctest.Wait()
		leave(errLeft) // the readers it held back share with the first
		if err := <-left; !errors.Is(err, errLeft) {
			t.Errorf("Lock: %v, want the cause", err)
		}
		readers.Wait()
		for range 4 {
			rw.RUnlock()
		}
		if !rw.TryLock() {
			t.Error("not free in the end")
		}
	})
}

func TestD3_RWMutexUnlockPanics(t *testing.T) {
	const (
		notReading = "csync: RUnlock of an RWMutex that is not locked for reading"
		notWriting = "csync: Unlock of an RWMutex that is not locked for writing"
	)
	var rw csync.RWMutex
	mustPanic(t, notReading, rw.RUnlock)
	mustPanic(t, notWriting, rw.Unlock)
	_ = rw.RLock(t.Context())
	mustPanic(t, notWriting, rw.Unlock)
	rw.RUnlock()
	_ = rw.Lock(t.Context())
	mustPanic(t, notReading, rw.RUnlock)
	rw.Unlock()
	if !rw.TryLock() {
		t.Error("the panics left it locked")
	}
}

// A mistaken Unlock panics and changes nothing: a reader that waits behind a writer still does.
func TestD3_RWMutexMistakenUnlockChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rw csync.RWMutex
		_ = rw.RLock(t.Context())
		var written, read bool // read only when nothing moves
		go func() {
			_ = rw.Lock(t.Context())
			written = true
		}()
		synctest.Wait()
		go func() {
			_ = rw.RLock(t.Context())
			read = true
		}()
		synctest.Wait()
		mustPanic(t, "csync: Unlock of an RWMutex that is not locked for writing", rw.Unlock)
		synctest.Wait()
		if written || read {
			t.Fatalf("a mistaken Unlock gave the lock to the writer: %t, to the reader behind it: %t", written, read)
		}
		rw.RUnlock()
		synctest.Wait()
		if !written || read {
			t.Fatalf("RUnlock gave the lock to the writer: %t, to the reader behind it: %t; want the writer", written, read)
		}
		rw.Unlock()
		synctest.Wait()
		if !read {
			t.Error("the reader has no lock after the writer's Unlock")
		}
		rw.RUnlock()
	})
}

// TestD3_RWMutexStress lets the race detector and a plain map look for
// a writer that is not alone.
func TestD3_RWMutexStress(t *testing.T) {
	var (
		rw     csync.RWMutex
		values = map[int]int{}
		wg     sync.WaitGroup
	)
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				if (g+i)%4 == 0 {
					_ = rw.With(t.Context(), func() error { values[i%10]++; return nil })
				} else {
					_ = rw.RWith(t.Context(), func() error { _ = values[i%10]; return nil })
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range values {
		sum += n
	}
	if sum != 8*2000/4 {
		t.Errorf("%d writes counted, want %d", sum, 8*2000/4)
	}
}

func TestD3_RWMutexAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var rw csync.RWMutex
	if n := testing.AllocsPerRun(1000, func() {
		_ = rw.RLock(ctx)
		rw.RUnlock()
		_ = rw.Lock(ctx)
		rw.Unlock()
	}); n != 0 {
		t.Errorf("%v allocs", n)
	}
}

func BenchmarkRWMutexRead(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var rw csync.RWMutex
	b.ReportAllocs()
	for b.Loop() {
		_ = rw.RLock(ctx)
		rw.RUnlock()
	}
}
