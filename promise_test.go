package stint_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stintgo/stint"
)

func TestD6_PromiseIsSettledOnce(t *testing.T) {
	later := errors.New("later")
	for _, c := range []struct {
		name   string
		settle func(p *stint.Promise[int]) bool
		value  int
		err    error
	}{
		{"Resolve", func(p *stint.Promise[int]) bool { return p.Resolve(7) }, 7, nil},
		{"Fail", func(p *stint.Promise[int]) bool { return p.Fail(errBoom) }, 0, errBoom},
		{"Cancel", func(p *stint.Promise[int]) bool {
			p.Future().Cancel(errBoom)
			return true
		}, 0, errBoom},
		{"Cancel without a cause", func(p *stint.Promise[int]) bool {
			p.Future().Cancel(nil)
			return true
		}, 0, context.Canceled},
	} {
		for _, watched := range []bool{false, true} {
			p := stint.NewPromise[int]()
			f := p.Future()
			if watched && settled(f) {
				t.Fatalf("%s: settled before it", c.name)
			}
			if !c.settle(p) {
				t.Errorf("%s = false, want that it settles the promise", c.name)
			}
			if p.Resolve(8) || p.Fail(later) {
				t.Errorf("%s: a settled promise was settled again", c.name)
			}
			f.Cancel(later)
			if v, err := f.Wait(t.Context()); v != c.value || err != c.err || !settled(f) { //nolint:errorlint // the very error
				t.Errorf("%s: Wait = %d, %v; want %d, %v", c.name, v, err, c.value, c.err)
			}
			if _, waiting := f.Why(); waiting || p.Future() != f {
				t.Errorf("%s: a promise waits for a slot, or has two futures", c.name)
			}
		}
	}
}

func TestD6_PromiseWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := stint.NewPromise[int]()
		go cancel(errBoom)
		if _, err := p.Future().Wait(ctx); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want the context's cause", err)
		}
		if !p.Resolve(1) {
			t.Error("the end of a Wait settled the promise")
		}
	})
}

// Under a limit of 1, the function that resolves a promise starts on the slot of the one that
// waits for it.
func TestA4_PromiseSuspendsTheSlotOfItsWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		p := stint.NewPromise[int]()
		waits := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) { return p.Future().Wait(ctx) })
		stint.Go(t.Context(), s, func(context.Context) (int, error) {
			p.Resolve(7)
			return 0, nil
		})
		if v, err := waits.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("Wait = %d, %v; want 7, nil", v, err)
		}
		atRest(t, s)
	})
}

func TestD6_PromiseIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		good, bad, dropped := stint.NewPromise[int](), stint.NewPromise[int](), stint.NewPromise[int]()
		text := stint.Then(t.Context(), s, good.Future(), toText)
		fails := stint.Then(t.Context(), s, bad.Future(), neverThen(t))
		cancels := stint.Then(t.Context(), s, dropped.Future(), neverThen(t))
		good.Resolve(42)
		bad.Fail(errBoom)
		cancels.Cancel(errBoom)
		if v, err := text.Wait(t.Context()); v != "42" || err != nil {
			t.Errorf("Wait = %q, %v; want 42, nil", v, err)
		}
		for _, f := range []*stint.Future[int]{fails, cancels, dropped.Future()} {
			if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		if dropped.Resolve(1) {
			t.Error("the cancellation of a continuation left the promise open")
		}
		atRest(t, s)
	})
}

func TestD6_PromiseTeardowns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, settle := range []func(*stint.Promise[int]){
			func(p *stint.Promise[int]) { p.Resolve(1) },
			func(p *stint.Promise[int]) { p.Fail(errBoom) },
			func(p *stint.Promise[int]) { p.Future().Cancel(errBoom) },
		} {
			p := stint.NewPromise[int]()
			var order []int
			for i := range 3 {
				p.Future().Teardown(func() { order = append(order, i) })
			}
			settle(p)
			if !slices.Equal(order, []int{2, 1, 0}) {
				t.Errorf("the teardowns were called in the order %v before the settling call returned", order)
			}
			p.Future().Teardown(func() { order = nil })
			if order != nil {
				t.Error("a teardown of a settled promise was not called at once")
			}
		}
	})
}

// A teardown that panics or ends its goroutine makes the promise fail, and the goroutine that
// settles it goes on.
func TestA3_PromiseTeardownDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exits, panics := stint.NewPromise[int](), stint.NewPromise[int]()
		exits.Future().Teardown(runtime.Goexit)
		panics.Future().Teardown(func() { panic(errBoom) })
		var went atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			exits.Resolve(1)
			panics.Resolve(1)
			went.Store(true)
		}()
		<-done
		if !went.Load() {
			t.Error("a teardown ended the goroutine that called Resolve")
		}
		if _, err := exits.Future().Wait(t.Context()); !errors.Is(err, stint.ErrGoexit) {
			t.Errorf("Wait: %v, want ErrGoexit", err)
		}
		var panicked *stint.PanicError
		if _, err := panics.Future().Wait(t.Context()); !errors.As(err, &panicked) || !errors.Is(err, errBoom) {
			t.Errorf("Wait: %v, want a PanicError", err)
		}
	})
}

func TestD6_PromiseFailNeedsAnError(t *testing.T) {
	p := stint.NewPromise[int]()
	want := "stint: Promise.Fail without an error: settle it with a value by Resolve"
	if got := panicOf(func() { p.Fail(nil) }); got != want {
		t.Errorf("Fail(nil) panics with %v, want %q", got, want)
	}
	if !p.Resolve(1) {
		t.Error("Fail(nil) settled the promise")
	}
}

func TestD6_ZeroPromisePanics(t *testing.T) {
	for _, p := range []*stint.Promise[int]{nil, {}} {
		wantZero(t, "Promise: make one with NewPromise", map[string]func(){
			"Resolve": func() { p.Resolve(1) },
			"Fail":    func() { p.Fail(nil) },
			"Future":  func() { p.Future() },
		})
	}
}

// If several goroutines settle a promise at once, one wins: every reader gets its outcome,
// and each teardown is called once.
func TestD6_PromiseRaces(t *testing.T) {
	for range 5000 {
		p := stint.NewPromise[int]()
		f := p.Future()
		var won, torn atomic.Int32
		var wg sync.WaitGroup
		wg.Go(func() {
			if p.Resolve(1) {
				won.Add(1)
			}
		})
		wg.Go(func() {
			if p.Fail(errBoom) {
				won.Add(1)
			}
		})
		wg.Go(func() { f.Cancel(nil) })
		wg.Go(func() { f.Teardown(func() { torn.Add(1) }) })
		v, err := f.Wait(t.Context())
		wg.Wait()
		again, sameErr := f.Wait(t.Context())
		if v != again || err != sameErr || (v == 1) != (err == nil) || torn.Load() != 1 { //nolint:errorlint // the very error
			t.Fatalf("Wait = %d, %v, then %d, %v; %d teardowns", v, err, again, sameErr, torn.Load())
		}
		if canceled := errors.Is(err, context.Canceled); (won.Load() == 0) != canceled {
			t.Fatalf("Wait: %v, and Resolve and Fail reported true %d times", err, won.Load())
		}
	}
}

func TestD6_ForgottenPromiseIsGarbage(t *testing.T) {
	gone := func() weak.Pointer[stint.Promise[[]byte]] {
		p := stint.NewPromise[[]byte]()
		kept := make([]byte, 1<<20)
		p.Future().Teardown(func() { kept[0] = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = p.Future().Wait(ctx)
		return weak.Make(p)
	}()
	for range 10 {
		runtime.GC()
		if gone.Value() == nil {
			return
		}
	}
	t.Error("a promise that nothing refers to is kept")
}
