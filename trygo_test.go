package stint_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// tryForms are the ways to start a function only if a slot is free. Each returns a
// function that waits until it has ended.
var tryForms = []struct {
	name string
	try  func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) (wait func() error, ok bool)
}{
	{"TryGo", func(
		ctx context.Context, s stint.Scheduler, fn func(context.Context) error,
	) (wait func() error, ok bool) {
		f, ok := stint.TryGo(ctx, s, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
		if !ok {
			return nil, f != nil
		}
		return func() error {
			_, err := f.Wait(context.Background())
			return err
		}, true
	}},
	{"Group.TryGo", func(
		ctx context.Context, s stint.Scheduler, fn func(context.Context) error,
	) (wait func() error, ok bool) {
		g := stint.NewGroup(ctx, s)
		if !g.TryGo(fn) {
			_ = g.Wait()
			return nil, false
		}
		return g.Wait, true
	}},
}

func TestA1_TryGoStartsOnAFreeSlot(t *testing.T) {
	for _, form := range tryForms {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(2, stint.Config{PerKey: 1})
			gate := make(chan struct{})
			running := func(context.Context) error {
				<-gate
				return errBoom
			}
			first, ok := form.try(t.Context(), s, running)
			second, also := form.try(t.Context(), s.Key("a"), running) // the worker of the first is on its way
			if !ok || !also {
				t.Fatalf("%s on a free slot: %t, %t", form.name, ok, also)
			}
			if _, ok := form.try(t.Context(), s, neverRuns(t)); ok {
				t.Errorf("%s started a function without a free slot", form.name)
			}
			synctest.Wait()
			if st := s.Stats(); st.Running != 2 || st.Queued != 0 {
				t.Errorf("%s: %d running, %d queued; want 2 and none", form.name, st.Running, st.Queued)
			}
			close(gate)
			for _, wait := range []func() error{first, second} {
				if err := wait(); err != errBoom { //nolint:errorlint // the very error
					t.Errorf("%s: the function's error is %v, want boom", form.name, err)
				}
			}
			atRest(t, s)
		})
	}
}

func TestA1_TryGoStartsNothingElse(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t trial) (context.Context, stint.Scheduler, func())
	}{
		{"all slots are taken", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(1, stint.Config{})
			permit := mustAcquire(t, s)
			return t.Context(), s, permit.Release
		}},
		{"too heavy for what is free", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(2, stint.Config{})
			permit := mustAcquire(t, s)
			return t.Context(), s.Weight(2), permit.Release
		}},
		{"too heavy at all", func(t trial) (context.Context, stint.Scheduler, func()) {
			return t.Context(), stint.New(1, stint.Config{}).Weight(2), func() {}
		}},
		{"the tier is at its cap", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1, Normal: 2}})
			permit := mustAcquire(t, s)
			return t.Context(), s.At(stint.Low), permit.Release
		}},
		{"the tier of the context is at its cap", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1, Normal: 2}})
			permit := mustAcquire(t, s)
			return stint.WithPriority(t.Context(), stint.Low), s, permit.Release
		}},
		{"the key is at its limit", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(2, stint.Config{PerKey: 1}).Key("a")
			permit := mustAcquire(t, s)
			return t.Context(), s, permit.Release
		}},
		{"another waits before it", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(2, stint.Config{})
			permit := mustAcquire(t, s)
			waits := stint.Go(t.Context(), s.Weight(2), func(context.Context) (int, error) { return 0, nil })
			return t.Context(), s, func() {
				permit.Release()
				_, _ = waits.Wait(t.Context())
			}
		}},
		{"paused", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(1, stint.Config{})
			s.Pause("test")
			return t.Context(), s, s.Resume
		}},
		{"closed", func(trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(1, stint.Config{})
			s.Close()
			return context.Background(), s, func() {}
		}},
		{"no capacity", func(t trial) (context.Context, stint.Scheduler, func()) {
			return t.Context(), stint.New(0, stint.Config{}), func() {}
		}},
		{"the context has ended", func(t trial) (context.Context, stint.Scheduler, func()) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, stint.New(1, stint.Config{}), func() {}
		}},
		{"the queue has room", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(1, stint.Config{Queue: 1})
			permit := mustAcquire(t, s)
			return t.Context(), s, permit.Release
		}},
		{"the queue is full and blocks", func(t trial) (context.Context, stint.Scheduler, func()) {
			s := stint.New(1, stint.Config{Queue: 1})
			permit := mustAcquire(t, s)
			stint.Go(t.Context(), s, value(1))
			return t.Context(), s, permit.Release
		}},
	} {
		for _, form := range tryForms {
			t.Run(c.name+", "+form.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, s, end := c.make(trial{t})
					synctest.Wait()
					before := s.Stats()
					if _, ok := form.try(ctx, s, neverRuns(t)); ok {
						t.Error("the function was started")
					}
					synctest.Wait()
					if after := s.Stats(); after.Queued != before.Queued || after.Running != before.Running || after.Blocked != 0 {
						t.Errorf("before %+v, after %+v", before, after)
					}
					end()
					atRest(t, s)
				})
			})
		}
	}
}

// One worker is on its way at a time, and jobs wait for it although slots are free. They go first, and
// TryGo has the slot that is left.
func TestA1_TryGoWhileAWorkerIsOnItsWay(t *testing.T) {
	for _, queued := range []int{0, 1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // no worker runs before this goroutine waits
			s := stint.New(4, stint.Config{})
			gate := make(chan struct{})
			fn := func(context.Context) (int, error) {
				<-gate
				return 0, nil
			}
			var futures []*stint.Future[int]
			for i := range 1 + queued {
				futures = append(futures, stint.Go(t.Context(), s.At(stint.Priority(i-1)), fn))
			}
			f, ok := stint.TryGo(t.Context(), s, fn)
			if want := queued < 3; ok != want {
				t.Fatalf("with %d jobs before it, TryGo under a limit of 4 reports %t, want %t", 1+queued, ok, want)
			}
			if ok {
				futures = append(futures, f)
			}
			synctest.Wait()
			if n := s.Stats().Running; n != len(futures) {
				t.Errorf("%d run, want %d", n, len(futures))
			}
			close(gate)
			for _, f := range futures {
				_, _ = f.Wait(t.Context())
			}
			atRest(t, s)
		})
	}
}

func TestD7_TryGoOfAGroupThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		g.Cancel(errBoom)
		if g.TryGo(neverRuns(t)) {
			t.Error("TryGo of a failed group = true")
		}
		if err := g.Wait(); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
		if text, _ := panicOf(func() { g.TryGo(neverRuns(t)) }).(string); !strings.Contains(text, "TryGo after Wait") {
			t.Errorf("TryGo after Wait panics with %q", text)
		}

		// A refused TryGo is not a failure.
		ctx, cancel := context.WithCancel(t.Context())
		g = stint.NewGroup(ctx, s)
		cancel()
		if g.TryGo(neverRuns(t)) {
			t.Error("TryGo of a group whose context has ended = true")
		}
		if err := g.Wait(); err != nil {
			t.Errorf("Wait of a group without functions: %v", err)
		}
	})
}

func TestA3_TryGoPanics(t *testing.T) {
	for _, form := range tryForms {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			wait, _ := form.try(t.Context(), s, func(context.Context) error { panic(errBoom) })
			var panicked *stint.PanicError
			if err := wait(); !errors.As(err, &panicked) {
				t.Errorf("%s: %v, want a PanicError", form.name, err)
			}
			atRest(t, s)
		})
	}
}

func TestB8_TryGoTakesASharedSlot(t *testing.T) {
	for _, form := range tryForms {
		synctest.Test(t, func(t *testing.T) {
			a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(1))
			gate := make(chan struct{})
			wait, ok := form.try(t.Context(), a, func(context.Context) error {
				<-gate
				return nil
			})
			if !ok {
				t.Fatalf("%s of a free shared slot = false", form.name)
			}
			for _, s := range []stint.Scheduler{a, b} {
				if _, ok := form.try(t.Context(), s, neverRuns(t)); ok {
					t.Errorf("%s without a free shared slot = true", form.name)
				}
			}
			close(gate)
			_ = wait()
			synctest.Wait()
			if wait, ok = form.try(t.Context(), b, func(context.Context) error { return nil }); ok {
				_ = wait()
			} else {
				t.Errorf("%s of a slot that came back = false", form.name)
			}
			wantAtRest(t, a, fa)
			wantAtRest(t, b, fb)
		})
	}
}

// All of these at once: the limit holds, and what TryGo says it has started has run.
func TestA1_TryGoStress(t *testing.T) {
	const limit, each = 3, 3000
	s := stint.New(limit, stint.Config{})
	var running, ran, started atomic.Int32
	fn := func(context.Context) error {
		if n := running.Add(1); n > limit {
			t.Errorf("%d run at once, limit %d", n, limit)
		}
		ran.Add(1)
		running.Add(-1)
		return nil
	}
	g := stint.NewGroup(t.Context(), s)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range each {
				switch (i + n) % 4 {
				case 0:
					if g.TryGo(fn) {
						started.Add(1)
					}
				case 1:
					f, ok := stint.TryGo(t.Context(), s, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
					if ok {
						started.Add(1)
						_, _ = f.Wait(t.Context())
					}
				case 2:
					g.Go(fn)
					started.Add(1)
				default:
					stint.Go(t.Context(), s.Key("a"), func(ctx context.Context) (int, error) { return 0, fn(ctx) })
					started.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if err := g.Wait(); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
	if ran.Load() != started.Load() {
		t.Errorf("%d functions ran, %d were started", ran.Load(), started.Load())
	}
}
