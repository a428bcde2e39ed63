package stint_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

func toText(_ context.Context, n int) (string, error) { return strconv.Itoa(n), nil }

// neverThen is a continuation that no test expects to be called.
func neverThen(tb testing.TB) func(context.Context, int) (int, error) {
	tb.Helper()
	return func(context.Context, int) (int, error) {
		tb.Error("the continuation was called")
		return 0, nil
	}
}

func TestD6_ThenPassesTheValueOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(41))
		plus := stint.Then(t.Context(), s, f, func(_ context.Context, n int) (int, error) { return n + 1, nil })
		text := stint.Then(t.Context(), s, plus, toText)
		synctest.Wait()
		if st := s.Stats(); st.Queued != 1 {
			t.Errorf("%d queued, want 1: a continuation is not queued before it can run", st.Queued)
		}
		permit.Release()
		if v, err := text.Wait(t.Context()); v != "42" || err != nil {
			t.Errorf("Wait = %q, %v; want 42, nil", v, err)
		}
		late := stint.Then(t.Context(), s, plus, toText)
		if v, err := late.Wait(t.Context()); v != "42" || err != nil {
			t.Errorf("Then on a settled future: %q, %v; want 42, nil", v, err)
		}
		atRest(t, s)
	})
}

func TestD6_ThenPassesFailureOn(t *testing.T) {
	for _, ending := range endings {
		if ending.name == "value" {
			continue
		}
		t.Run(ending.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				f, settle := ending.make(trial{t}, s)
				next := stint.Then(t.Context(), s, stint.Then(t.Context(), s, f, neverThen(t)), neverThen(t))
				settle()
				_, want := f.Wait(t.Context())
				_, got := next.Wait(t.Context())
				if want == nil || got != want { //nolint:errorlint // the very error
					t.Errorf("the first failed with %v, the last with %v", want, got)
				}
				late := stint.Then(t.Context(), s, f, neverThen(t))
				if _, got := late.Wait(t.Context()); got != want { //nolint:errorlint // the very error
					t.Errorf("Then on a failed future failed with %v, want %v", got, want)
				}
				atRest(t, s)
			})
		})
	}
}

// A future fails by its teardowns too, whether they were registered before the
// continuation or after it.
func TestD6_ThenAfterATeardownThatPanics(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			permit := mustAcquire(t, s)
			f := stint.Go(t.Context(), s, value(1))
			if before {
				f.Teardown(func() { panic(errBoom) })
			}
			next := stint.Then(t.Context(), s, f, neverThen(t))
			if !before {
				f.Teardown(func() { panic(errBoom) })
			}
			permit.Release()
			if _, err := next.Wait(t.Context()); !errors.Is(err, errBoom) {
				t.Errorf("Wait: %v, want the teardown's panic", err)
			}
		})
	}
}

func TestD6_ThenStartsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(0))
		var order []int
		var last *stint.Future[int]
		for i := range 5 {
			last = stint.Then(t.Context(), s, f, func(context.Context, int) (int, error) {
				order = append(order, i)
				return 0, nil
			})
		}
		permit.Release()
		_, _ = last.Wait(t.Context())
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("the continuations of a future started in the order %v", order)
		}
	})
}

func TestD6_CancelChildCancelsQueuedParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, never(t))
		middle := stint.Then(t.Context(), s, f, neverThen(t))
		last := stint.Then(t.Context(), s, middle, neverThen(t))
		last.Cancel(errBoom)
		for i, f := range []*stint.Future[int]{f, middle, last} {
			if !settled(f) {
				t.Errorf("future %d of the chain has no outcome at once", i)
			}
			if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("future %d of the chain: %v, want boom", i, err)
			}
		}
		permit.Release()
		atRest(t, s)
	})
}

func TestD6_CancelChildCancelsRunningParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		obeys := stint.Go(t.Context(), s, untilDone)
		insists := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 1, nil
		})
		children := []*stint.Future[int]{
			stint.Then(t.Context(), s, obeys, neverThen(t)),
			stint.Then(t.Context(), s, insists, neverThen(t)),
		}
		synctest.Wait()
		for _, child := range children {
			child.Cancel(errBoom)
			if _, err := child.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		if _, err := obeys.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("the parent: %v, want boom", err)
		}
		if v, err := insists.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("the parent that returned a value: %d, %v", v, err)
		}
		atRest(t, s)
	})
}

// A continuation that is queued or runs itself is cancelled like any other
// future, and what it continues keeps its outcome.
func TestD6_CancelChildWhoseParentHasSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, value(1))
		running := stint.Then(t.Context(), s, f, func(ctx context.Context, _ int) (int, error) { return untilDone(ctx) })
		synctest.Wait()
		queued := stint.Then(t.Context(), s, f, neverThen(t))
		queued.Cancel(errBoom)
		if !settled(queued) {
			t.Error("a queued continuation was cancelled and has no outcome at once")
		}
		running.Cancel(errBoom)
		for _, f := range []*stint.Future[int]{queued, running} {
			if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("the parent: %d, %v", v, err)
		}
		atRest(t, s)
	})
}

func TestD6_CancelParentOfAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, untilDone)
		next := stint.Then(t.Context(), s, f, neverThen(t))
		synctest.Wait()
		f.Cancel(errBoom)
		if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
	})
}

// The end of the context that Then was given cancels both, wherever they are.
func TestD6_ThenContextEndsBoth(t *testing.T) {
	for _, running := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			fn := untilDone
			if !running {
				permit := mustAcquire(t, s)
				defer permit.Release()
				fn = never(t)
			}
			f := stint.Go(t.Context(), s, fn)
			synctest.Wait()
			ctx, cancel := context.WithCancelCause(t.Context())
			next := stint.Then(ctx, s, f, neverThen(t))
			cancel(errBoom)
			if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("the continuation: %v, want boom", err)
			}
			if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("what it continues: %v, want boom", err)
			}
		})
	}
}

func TestD6_ThenWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		done := stint.Go(t.Context(), s, value(1))
		running := stint.Go(t.Context(), s, untilDone)
		_, _ = done.Wait(t.Context())
		for _, f := range []*stint.Future[int]{done, running} {
			next := stint.Then(ctx, s, f, neverThen(t))
			if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		if _, err := running.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("what it continues: %v, want boom", err)
		}
		atRest(t, s)
	})
}

func TestD6_ThenOnAClosedScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, closed := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
		closed.Close()
		ok := stint.Go(t.Context(), open, value(1))
		_, _ = ok.Wait(t.Context())
		if _, err := stint.Then(t.Context(), closed, ok, neverThen(t)).Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
			t.Errorf("after a settled future: %v, want ErrClosed", err)
		}
		permit := mustAcquire(t, open)
		queued := stint.Go(t.Context(), open, value(1))
		next := stint.Then(t.Context(), closed, queued, neverThen(t))
		permit.Release()
		if _, err := next.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
			t.Errorf("after a queued future: %v, want ErrClosed", err)
		}
	})
}

func TestD6_ThenInADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		f := stint.Go(t.Context(), s, value(1))
		next := stint.Then(t.Context(), s, f, neverThen(t))
		drained := make(chan error)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		permit.Release()
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		if v, err := f.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("what was queued: %d, %v", v, err)
		}
		if _, err := next.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
			t.Errorf("the continuation: %v, want ErrClosed", err)
		}
	})
}

// A continuation may run on another scheduler than what it continues, and has
// its slot there.
func TestD6_ThenOnAnotherScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
		permit := mustAcquire(t, b)
		f := stint.Go(t.Context(), a, value(1))
		next := stint.Then(t.Context(), b, f, toText)
		synctest.Wait()
		if sa, sb := a.Stats(), b.Stats(); sa.Running != 0 || sb.Queued != 1 {
			t.Errorf("%d running there, %d queued here; want 0 and 1", sa.Running, sb.Queued)
		}
		permit.Release()
		if v, err := next.Wait(t.Context()); v != "1" || err != nil {
			t.Errorf("Wait = %q, %v", v, err)
		}
	})
}

// A full queue keeps new work out, not the rest of what it has accepted.
func TestD6_ThenPassesAFullQueue(t *testing.T) {
	for _, whenFull := range []stint.WhenFull{stint.Block, stint.Refuse} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{Queue: 1, WhenFull: whenFull})
			other := stint.New(1, stint.Config{})
			permit := mustAcquire(t, s)
			first := stint.Go(t.Context(), s, value("first"))
			next := stint.Then(t.Context(), s, stint.Go(t.Context(), other, value(2)), toText)
			synctest.Wait()
			if n := s.Stats().Queued; n != 2 {
				t.Errorf("%d queued, want the one that fills the queue and the continuation", n)
			}
			permit.Release()
			for _, f := range []*stint.Future[string]{first, next} {
				if _, err := f.Wait(t.Context()); err != nil {
					t.Errorf("Wait: %v", err)
				}
			}
			atRest(t, s)
		})
	}
}

func TestA3_ThenPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, value(1))
		panics := stint.Then(t.Context(), s, f, func(context.Context, int) (int, error) { panic(errBoom) })
		exits := stint.Then(t.Context(), s, f, func(context.Context, int) (int, error) {
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

// A chain is cancelled from its end however long it is.
func TestD6_LongChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links = 10_000
		s := stint.New(1, stint.Config{})
		chain := func() (f *stint.Future[int]) {
			f = stint.Go(t.Context(), s, value(0))
			for range links {
				f = stint.Then(t.Context(), s, f, func(_ context.Context, n int) (int, error) { return n + 1, nil })
			}
			return f
		}
		permit := mustAcquire(t, s)
		f, g := chain(), chain()
		g.Cancel(errBoom)
		permit.Release()
		if v, err := f.Wait(t.Context()); v != links || err != nil {
			t.Errorf("Wait = %d, %v", v, err)
		}
		if _, err := g.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
		atRest(t, s)
	})
}

// stackContext is a context that records how deep the stacks are on which its methods and those
// of its teardown are called.
type stackContext struct {
	context.Context //nolint:containedctx // it is a context itself

	frames atomic.Int64 // the most that were seen
}

func (c *stackContext) look() {
	n := int64(runtime.Callers(0, make([]uintptr, 10_000)))
	for old := c.frames.Load(); n > old && !c.frames.CompareAndSwap(old, n); {
		old = c.frames.Load()
	}
}

func (c *stackContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// A chain fails, and is cancelled, on a stack that does not grow with its length.
func TestD6_LongChainNeedsNoDeepStack(t *testing.T) {
	const links = 1000
	closed := stint.New(1, stint.Config{}) // so that each Catch of a failure fails in turn
	closed.Close()
	for _, c := range []struct {
		name string
		link func(context.Context, *stint.Future[int]) *stint.Future[int]
		end  func(first *stint.Promise[int], last *stint.Future[int])
	}{
		{"Then fails", func(ctx context.Context, f *stint.Future[int]) *stint.Future[int] {
			return stint.Then(ctx, closed, f, neverThen(t))
		}, func(first *stint.Promise[int], _ *stint.Future[int]) { first.Fail(errBoom) }},
		{"Catch fails", func(ctx context.Context, f *stint.Future[int]) *stint.Future[int] {
			return stint.Catch(ctx, closed, f, neverCatch(t))
		}, func(first *stint.Promise[int], _ *stint.Future[int]) { first.Fail(errBoom) }},
		{"Then is cancelled", func(ctx context.Context, f *stint.Future[int]) *stint.Future[int] {
			return stint.Then(ctx, closed, f, neverThen(t))
		}, func(_ *stint.Promise[int], last *stint.Future[int]) { last.Cancel(errBoom) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := &stackContext{Context: t.Context()}
			first := stint.NewPromise[int]()
			f := first.Future()
			for range links {
				f = c.link(ctx, f)
				f.Teardown(ctx.look)
			}
			c.end(first, f)
			if _, err := f.Wait(t.Context()); err == nil {
				t.Error("the last of the chain has a value")
			}
			if n := ctx.frames.Load(); n > 100 {
				t.Errorf("%d calls end on a stack of %d frames, want no more than 100", links, n)
			}
		})
	}
}

// The cancellation of a continuation races with the outcome of what it
// continues. The continuation settles at once, although no slot is free.
func TestD6_CancelChildRacesWithParent(t *testing.T) {
	a, b := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
	permit := mustAcquire(t, b)
	for range 3000 {
		f := stint.Go(t.Context(), a, value(1))
		next := stint.Then(t.Context(), b, f, neverThen(t))
		var wg sync.WaitGroup
		wg.Go(func() { next.Cancel(errBoom) })
		wg.Go(func() { _, _ = f.Wait(t.Context()) })
		if _, err := next.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Fatalf("Wait: %v, want boom", err)
		}
		wg.Wait()
	}
	permit.Release()
}
