package stint_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

var errBoom = errors.New("boom")

// atRest checks that s has neither running nor waiting work.
func atRest(tb testing.TB, s stint.Scheduler) {
	tb.Helper()
	synctest.Wait()
	if st := s.Stats(); st.Running != 0 || st.Queued != 0 || st.Blocked != 0 {
		tb.Errorf("at rest: %d running, %d queued, %d blocked, want none", st.Running, st.Queued, st.Blocked)
	}
}

// settled reports whether f has an outcome, without waiting for one.
func settled[T any](f *stint.Future[T]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

// never is a function that no test expects to be called.
func never(tb testing.TB) func(context.Context) (int, error) {
	tb.Helper()
	return func(context.Context) (int, error) {
		tb.Error("the function was called")
		return 0, nil
	}
}

func value[T any](v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, nil }
}

// untilDone runs until its context ends, and fails with the cause.
func untilDone(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func TestD6_WaitReturnsTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		ok := stint.Go(t.Context(), s, value("text"))
		bad := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 7, errBoom })
		for range 2 { // as often as one likes
			if v, err := ok.Wait(t.Context()); v != "text" || err != nil {
				t.Errorf("Wait = %q, %v; want text, nil", v, err)
			}
			if v, err := bad.Wait(t.Context()); v != 7 || err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait = %d, %v; want 7, boom", v, err)
			}
		}
		if !settled(ok) || !settled(bad) {
			t.Error("Done is open after Wait")
		}
		atRest(t, s)
	})
}

func TestD6_DoneClosesWithTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(1))
		done := f.Done()
		synctest.Wait()
		if settled(f) {
			t.Error("Done is closed while the function is queued")
		}
		permit.Release()
		<-done
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("Wait = %d, %v; want 1, nil", v, err)
		}
	})
}

func TestD6_WaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(5))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			synctest.Wait()
			cancel(errBoom)
		}()
		if v, err := f.Wait(ctx); v != 0 || !errors.Is(err, errBoom) {
			t.Errorf("Wait = %d, %v; want 0 and the context's cause", v, err)
		}
		permit.Release()
		if v, err := f.Wait(t.Context()); v != 5 || err != nil {
			t.Errorf("the function did not go on: %d, %v", v, err)
		}
		if v, err := f.Wait(ctx); v != 5 || err != nil {
			t.Errorf("with an outcome and an ended context, Wait = %d, %v; want the outcome", v, err)
		}
	})
}

func TestD6_CancelQueued(t *testing.T) {
	for _, c := range []struct{ give, want error }{{errBoom, errBoom}, {nil, context.Canceled}} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			permit := mustAcquire(t, s)
			f := stint.Go(t.Context(), s, never(t))
			after := stint.Go(t.Context(), s, value(2))
			f.Cancel(c.give)
			if !settled(f) {
				t.Error("a queued function was cancelled and has no outcome at once")
			}
			if n := s.Stats().Queued; n != 1 {
				t.Errorf("%d queued after the cancellation, want 1", n)
			}
			f.Cancel(errors.New("too late"))
			if _, err := f.Wait(t.Context()); err != c.want { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want %v", err, c.want)
			}
			permit.Release()
			if v, err := after.Wait(t.Context()); v != 2 || err != nil {
				t.Errorf("the next one: %d, %v", v, err)
			}
			atRest(t, s)
		})
	}
}

// A heavy entry that waits in front holds lighter ones back; its cancellation
// lets them start.
func TestD6_CancelQueuedStartsWhatItHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		permit := mustAcquire(t, s)
		heavy := stint.Go(t.Context(), s.Weight(2), never(t))
		light := stint.Go(t.Context(), s, value(3))
		synctest.Wait()
		if settled(light) {
			t.Fatal("a light entry passed a heavy one")
		}
		heavy.Cancel(nil)
		if v, err := light.Wait(t.Context()); v != 3 || err != nil {
			t.Errorf("Wait = %d, %v", v, err)
		}
		permit.Release()
		atRest(t, s)
	})
}

func TestD6_CancelRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		obeys := stint.Go(t.Context(), s, untilDone)
		insists := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 9, nil
		})
		synctest.Wait()
		obeys.Cancel(errBoom)
		obeys.Cancel(errors.New("the first cause stands"))
		insists.Cancel(nil)
		if _, err := obeys.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
		if v, err := insists.Wait(t.Context()); v != 9 || err != nil {
			t.Errorf("a function may still return a value: %d, %v", v, err)
		}
		atRest(t, s)
	})
}

func TestD6_CancelSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, value(4))
		g := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 0, errBoom })
		synctest.Wait()
		f.Cancel(context.DeadlineExceeded)
		g.Cancel(context.DeadlineExceeded)
		if v, err := f.Wait(t.Context()); v != 4 || err != nil {
			t.Errorf("Wait = %d, %v; want 4, nil", v, err)
		}
		if _, err := g.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
	})
}

// trial is a test that a table's functions are given.
type trial struct{ *testing.T }

// endings are the ways in which a future gets its outcome. Each returns the
// future and what makes it settle.
var endings = []struct {
	name string
	make func(trial, stint.Scheduler) (*stint.Future[int], func())
}{
	{"value", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, value(1)), permit.Release
	}},
	{"error", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, func(context.Context) (int, error) { return 0, errBoom }), permit.Release
	}},
	{"panic", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, func(context.Context) (int, error) { panic("ouch") }), permit.Release
	}},
	{"Goexit", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, exits), permit.Release
	}},
	{"cancelled while queued", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, never(t))
		return f, func() { f.Cancel(nil); permit.Release() }
	}},
	{"cancelled while running", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		f := stint.Go(t.Context(), s, untilDone)
		synctest.Wait()
		return f, func() { f.Cancel(nil) }
	}},
	{"cleared", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, never(t)), func() { s.Clear(); permit.Release() }
	}},
	{"closed", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		permit := mustAcquire(t, s)
		return stint.Go(t.Context(), s, never(t)), func() { s.Close(); permit.Release() }
	}},
	{"refused from the start", func(t trial, s stint.Scheduler) (*stint.Future[int], func()) {
		return stint.Go(t.Context(), s.Weight(2), never(t)), func() {}
	}},
}

// exits ends its goroutine, as testing.T.FailNow does.
func exits(context.Context) (int, error) {
	runtime.Goexit()
	return 0, nil
}

func TestD6_TeardownsRunOnceLastFirstBeforeWait(t *testing.T) {
	for _, ending := range endings {
		t.Run(ending.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				f, settle := ending.make(trial{t}, s)
				var calls []int
				for i := range 3 {
					f.Teardown(func() { calls = append(calls, i) })
				}
				settle()
				_, _ = f.Wait(t.Context())
				want := []int{2, 1, 0}
				if ending.name == "refused from the start" {
					want = []int{0, 1, 2} // each at once
				}
				if !slices.Equal(calls, want) {
					t.Errorf("teardowns ran as %v, want %v", calls, want)
				}
				late := 0
				f.Teardown(func() { late++ })
				if late != 1 {
					t.Errorf("a teardown of a settled future ran %d times before Teardown returned", late)
				}
				atRest(t, s)
			})
		})
	}
}

func TestD6_TeardownThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		var calls []string
		good := stint.Go(t.Context(), s, value(6))
		good.Teardown(func() { calls = append(calls, "first") })
		good.Teardown(func() { panic(errBoom) })
		good.Teardown(func() { calls = append(calls, "last") })
		bad := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 0, context.DeadlineExceeded })
		bad.Teardown(func() { panic("one") })
		bad.Teardown(func() { panic("two") })
		permit.Release()

		_, err := good.Wait(t.Context())
		var panicked *stint.PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, errBoom) {
			t.Errorf("Wait: %v, want a PanicError that wraps boom", err)
		}
		if !slices.Equal(calls, []string{"last", "first"}) {
			t.Errorf("the other teardowns: %v", calls)
		}
		_, err = bad.Wait(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "panicked: one") ||
			!strings.Contains(err.Error(), "panicked: two") {
			t.Errorf("Wait: %v, want the function's error and both panics", err)
		}
		atRest(t, s)
	})
}

// A future that has run and is about to settle keeps no entry that the
// scheduler uses again: cancelling it then removes no other work from the queue.
func TestD6_CancelWhileSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s.Key("a"), value(1))
		blocker := stint.Go(t.Context(), s.Key("b"), untilDone) // gets the slot of f
		var others []*stint.Future[int]
		f.Teardown(func() {
			for range 3 { // one of them gets what the scheduler kept of f
				others = append(others, stint.Go(t.Context(), s.Key("c"), value(2)))
			}
			f.Cancel(errBoom)
		})
		permit.Release()
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("Wait = %d, %v", v, err)
		}
		blocker.Cancel(nil)
		for _, other := range others {
			if v, err := other.Wait(t.Context()); v != 2 || err != nil {
				t.Errorf("another one: %d, %v", v, err)
			}
		}
		atRest(t, s)
	})
}

// A teardown that ends its goroutine (t.FailNow does) takes nothing with it:
// neither the other teardowns nor the worker nor what waits behind.
func TestD6_TeardownThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(6))
		others := 0
		f.Teardown(func() { others++ })
		f.Teardown(runtime.Goexit)
		f.Teardown(func() { others++ })
		next := stint.Go(t.Context(), s, value(7))
		permit.Release()
		if _, err := f.Wait(t.Context()); !errors.Is(err, stint.ErrGoexit) {
			t.Errorf("Wait: %v, want ErrGoexit", err)
		}
		if v, err := next.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("the next one: %d, %v", v, err)
		}
		if others != 2 {
			t.Errorf("%d of the 2 other teardowns ran", others)
		}
		atRest(t, s)
	})
}

// Cancel runs the teardowns in its caller's goroutine, which may end there.
func TestD6_TeardownThatExitsTheCanceller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		permit := mustAcquire(t, s)
		heavy := stint.Go(t.Context(), s.Weight(2), never(t))
		heavy.Teardown(runtime.Goexit)
		next := stint.Go(t.Context(), s, value(7)) // starts with the cancellation
		go heavy.Cancel(errBoom)
		if v, err := next.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("the next one: %d, %v", v, err)
		}
		if _, err := heavy.Wait(t.Context()); !errors.Is(err, errBoom) || !errors.Is(err, stint.ErrGoexit) {
			t.Errorf("Wait: %v, want the cause and ErrGoexit", err)
		}
		permit.Release()
		atRest(t, s)
	})
}

// race calls touch for a future that is about to settle, over and over, a
// little later each time, so that one or the other call falls between any two
// steps of settling.
func race(t *testing.T, touch func(*stint.Future[int])) {
	t.Helper()
	s := stint.New(2, stint.Config{})
	for i := range 20_000 {
		var returning atomic.Bool
		f := stint.Go(t.Context(), s, func(context.Context) (int, error) {
			returning.Store(true)
			return 1, nil
		})
		for !returning.Load() {
			runtime.Gosched()
		}
		for range i % 200 {
			returning.Load()
		}
		if touch(f); t.Failed() {
			return
		}
	}
}

// Registration races with the outcome. In either order, the teardown has run when
// a Wait that begins after the registration returns.
func TestD6_TeardownRacesWithTheOutcome(t *testing.T) {
	race(t, func(f *stint.Future[int]) {
		var calls atomic.Int32
		f.Teardown(func() { calls.Add(1) })
		if _, err := f.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("the teardown ran %d times before Wait returned", n)
		}
	})
}

// Done races with the outcome: the channel that it returns is closed in the end.
func TestD6_DoneRacesWithTheOutcome(t *testing.T) {
	race(t, func(f *stint.Future[int]) { <-f.Done() })
}

// Registrations race with each other and with the outcome.
func TestD6_TeardownsRaceWithEachOther(t *testing.T) {
	race(t, func(f *stint.Future[int]) {
		var wg sync.WaitGroup
		var calls atomic.Int32
		for range 3 {
			wg.Go(func() { f.Teardown(func() { calls.Add(1) }) })
		}
		wg.Wait()
		if _, err := f.Wait(t.Context()); err != nil || calls.Load() != 3 {
			t.Errorf("%d of 3 teardowns ran before Wait returned (%v)", calls.Load(), err)
		}
	})
}

func TestA3_GoPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, panicsInside)
		_, err := f.Wait(t.Context())
		var panicked *stint.PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, errBoom) {
			t.Fatalf("Wait: %v, want a PanicError that wraps boom", err)
		}
		if panicked.Value != any(errBoom) || !strings.Contains(string(panicked.Stack), "panicsInside") {
			t.Errorf("value %v, stack\n%s", panicked.Value, panicked.Stack)
		}
		if !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "panicsInside") {
			t.Errorf("the message has no value or no stack: %v", err)
		}
		text := stint.Go(t.Context(), s, func(context.Context) (int, error) { panic("no error") })
		if _, err := text.Wait(t.Context()); errors.Unwrap(err) != nil {
			t.Errorf("a panic with a text wraps %v", errors.Unwrap(err))
		}
		none := stint.Go(t.Context(), s, func(context.Context) (int, error) { panic(nil) })
		var nilPanic *runtime.PanicNilError
		if _, err := none.Wait(t.Context()); !errors.As(err, &nilPanic) {
			t.Errorf("panic(nil): %v", err)
		}
		atRest(t, s)
	})
}

func panicsInside(context.Context) (int, error) { panic(errBoom) }

func TestA3_GoExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, exits)
		if _, err := f.Wait(t.Context()); err != stint.ErrGoexit { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want ErrGoexit", err)
		}
		atRest(t, s)
	})
}

// Whatever the function does, its slot goes to the next, in order.
func TestA3_SlotIsAlwaysReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		var started []int
		var futures []*stint.Future[int]
		for i := range 40 {
			futures = append(futures, stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
				started = append(started, i)
				if n := s.Stats().Running; n != 1 {
					t.Errorf("%d running beside the function, want 1", n)
				}
				switch i % 4 {
				case 0:
					return panicsInside(ctx)
				case 1:
					return exits(ctx)
				case 2:
					return 0, errBoom
				}
				return i, nil
			}))
		}
		permit.Release()
		for i, f := range futures {
			if v, err := f.Wait(t.Context()); (err == nil) != (i%4 == 3) || err == nil && v != i {
				t.Errorf("future %d: %d, %v", i, v, err)
			}
		}
		if !slices.IsSorted(started) || len(started) != 40 {
			t.Errorf("started in the order %v", started)
		}
		atRest(t, s)
	})
}

// A future is one object of at most 64 bytes, so that a million of them fit.
func TestD6_FutureIsSmall(t *testing.T) {
	if size := reflect.TypeFor[stint.Future[int]]().Size(); size > 64 {
		t.Errorf("Future[int] has %d bytes, want at most 64", size)
	}
}

// The future is the one thing that Go allocates, apart from what workers share.
func TestD6_GoAllocatesTheFutureOnly(t *testing.T) {
	const batch = 1000
	s := stint.New(4, stint.Config{})
	futures := make([]*stint.Future[int], batch)
	one := value(1)
	allocs := testing.AllocsPerRun(20, func() {
		for i := range futures {
			futures[i] = stint.Go(t.Context(), s, one)
		}
		for _, f := range slices.Backward(futures) {
			_, _ = f.Wait(t.Context())
		}
	})
	if per := allocs / batch; per > 1.1 {
		t.Errorf("Go and Wait make %.2f allocations a future, want 1", per)
	}
}
