package stint_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// neverCatch is a continuation of a failure that no test expects to be called.
func neverCatch(tb testing.TB) func(context.Context, error) (int, error) {
	tb.Helper()
	return func(_ context.Context, err error) (int, error) {
		tb.Errorf("the continuation was called with %v", err)
		return 0, nil
	}
}

// instead is a continuation of a failure that has a value.
func instead(v int) func(context.Context, error) (int, error) {
	return func(context.Context, error) (int, error) { return v, nil }
}

// However a future fails, its continuation gets that very error, on a slot of its own.
func TestD6_CatchGetsTheFailure(t *testing.T) {
	for _, ending := range endings {
		if ending.name == "value" {
			continue
		}
		t.Run(ending.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, other := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
				f, settle := ending.make(trial{t}, s)
				var caught error
				next := stint.Catch(t.Context(), other, f, func(_ context.Context, err error) (int, error) {
					caught = err
					if n := other.Stats().Running; n != 1 {
						t.Errorf("%d slots are in use while the continuation runs, want its own", n)
					}
					return 7, nil
				})
				settle()
				if v, err := next.Wait(t.Context()); v != 7 || err != nil {
					t.Errorf("Wait = %d, %v; want the continuation's 7", v, err)
				}
				if _, err := f.Wait(t.Context()); err == nil || caught != err { //nolint:errorlint // the very error
					t.Errorf("the future failed with %v, the continuation got %v", err, caught)
				}
				late := stint.Catch(t.Context(), other, f, func(context.Context, error) (int, error) { return 8, errBoom })
				if v, err := late.Wait(t.Context()); v != 8 || err != errBoom { //nolint:errorlint // the very error
					t.Errorf("Catch of a failed future: %d, %v; want 8, boom", v, err)
				}
				atRest(t, other)
			})
		})
	}
}

// A value passes by without a slot, also where none can be had.
func TestD6_CatchPassesAValueOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, busy, closed := stint.New(1, stint.Config{}), stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
		permit := mustAcquire(t, busy)
		closed.Close()
		p := stint.NewPromise[int]()
		for _, f := range []*stint.Future[int]{stint.Go(t.Context(), s, value(41)), p.Future()} {
			for _, on := range []stint.Scheduler{busy, closed} {
				next := stint.Catch(t.Context(), on, f, neverCatch(t))
				plus := stint.Then(t.Context(), s, next, func(_ context.Context, n int) (int, error) { return n + 1, nil })
				p.Resolve(41)
				if v, err := plus.Wait(t.Context()); v != 42 || err != nil {
					t.Errorf("Wait = %d, %v; want 42, nil", v, err)
				}
				late := stint.Catch(t.Context(), on, next, neverCatch(t))
				if v, err := late.Wait(t.Context()); v != 41 || err != nil || !settled(late) {
					t.Errorf("Catch of a settled future: %d, %v; want 41, nil", v, err)
				}
			}
		}
		permit.Release()
		atRest(t, busy)
	})
}

func TestD6_CatchIsCancelled(t *testing.T) {
	for _, by := range []string{"Cancel", "its context"} {
		for _, running := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, other := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
				if !running {
					defer mustAcquire(t, s).Release()
				}
				fn := untilDone
				if !running {
					fn = never(t)
				}
				f := stint.Go(t.Context(), s, fn)
				synctest.Wait()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				next := stint.Catch(ctx, other, f, neverCatch(t))
				if by == "Cancel" {
					cancel = next.Cancel
				}
				cancel(errBoom)
				for _, f := range []*stint.Future[int]{next, f} {
					if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
						t.Errorf("by %s: Wait: %v, want boom", by, err)
					}
				}
				atRest(t, other)
			})
		}
	}
}

// What f and the continuation have in common ends: the continuation is not called for that.
func TestD6_CatchContextOfBothEnds(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		for range 200 {
			synctest.Test(t, func(t *testing.T) {
				s, other := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
				defer mustAcquire(t, s).Release()
				ctx, cancel := context.WithCancelCause(t.Context())
				next := stint.Catch(ctx, other, stint.Go(ctx, s, never(t)), neverCatch(t))
				if cancelled {
					go next.Cancel(errBoom)
				}
				cancel(errBoom)
				if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
					t.Errorf("Wait: %v, want boom", err)
				}
			})
		}
	}
}

// The first future is cancelled by the second and returns a value all the same: that is too late.
func TestD6_CatchCancelledBeforeAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 1, nil
		})
		next := stint.Catch(t.Context(), s, f, neverCatch(t))
		synctest.Wait()
		next.Cancel(errBoom)
		if v, err := next.Wait(t.Context()); v != 0 || err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait = %d, %v; want 0, boom", v, err)
		}
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("the first future: %d, %v; want 1, nil", v, err)
		}
		atRest(t, s)
	})
}

func TestD6_CatchWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		good, bad := stint.NewPromise[int](), stint.NewPromise[int]()
		good.Resolve(1)
		bad.Fail(errors.New("another"))
		for _, f := range []*stint.Future[int]{good.Future(), bad.Future(), stint.Go(t.Context(), s, untilDone)} {
			next := stint.Catch(ctx, s, f, neverCatch(t))
			if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		atRest(t, s)
	})
}

func TestD6_CatchWhileItWaitsAndRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		p := stint.NewPromise[int]()
		p.Fail(errBoom)
		later := errors.New("later")
		running := stint.Catch(t.Context(), s, p.Future(), func(ctx context.Context, _ error) (int, error) {
			return untilDone(ctx)
		})
		synctest.Wait()
		queued := stint.Catch(t.Context(), s, p.Future(), neverCatch(t))
		if _, waiting := queued.Why(); !waiting || s.Stats().Queued != 1 {
			t.Error("a continuation without a free slot is not queued")
		}
		for _, f := range []*stint.Future[int]{queued, running} {
			f.Cancel(later)
			if _, err := f.Wait(t.Context()); err != later { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want the cause", err)
			}
		}
		atRest(t, s)
	})
}

func TestD6_CatchOnAClosedScheduler(t *testing.T) {
	s := stint.New(1, stint.Config{})
	s.Close()
	p := stint.NewPromise[int]()
	p.Fail(errBoom)
	next := stint.Catch(t.Context(), s, p.Future(), neverCatch(t))
	if _, err := next.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
		t.Errorf("Wait: %v, want ErrClosed", err)
	}
}

func TestA3_CatchPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		p := stint.NewPromise[int]()
		p.Fail(errBoom)
		panics := stint.Catch(t.Context(), s, p.Future(), func(_ context.Context, err error) (int, error) { panic(err) })
		exits := stint.Catch(t.Context(), s, panics, func(context.Context, error) (int, error) {
			runtime.Goexit()
			return 0, nil
		})
		var panicked *stint.PanicError
		if _, err := panics.Wait(t.Context()); !errors.As(err, &panicked) || !errors.Is(err, errBoom) {
			t.Errorf("Wait: %v, want a PanicError", err)
		}
		if _, err := exits.Wait(t.Context()); !errors.Is(err, stint.ErrGoexit) {
			t.Errorf("Wait: %v, want ErrGoexit", err)
		}
		atRest(t, s)
	})
}

// The cancellation of a continuation races with the failure that it is for, and with the value
// that it passes on.
func TestD6_CatchRacesWithCancel(t *testing.T) {
	s := stint.New(1, stint.Config{})
	for i := range 3000 {
		p := stint.NewPromise[int]()
		next := stint.Catch(t.Context(), s, p.Future(), instead(2))
		var wg sync.WaitGroup
		wg.Go(func() { next.Cancel(context.Canceled) })
		wg.Go(func() {
			if i%2 == 0 {
				p.Fail(errBoom)
			} else {
				p.Resolve(1)
			}
		})
		v, err := next.Wait(t.Context())
		wg.Wait()
		if want := 2 - i%2; err == nil && v != want || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("Wait = %d, %v; want %d or the cancellation", v, err, want)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
}
