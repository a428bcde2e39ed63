package stint_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// panics collects what OnPanic of a Config receives.
type panics struct {
	mu  sync.Mutex
	all []*stint.PanicError
}

func (p *panics) add(e *stint.PanicError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, e)
}

func (p *panics) take() []*stint.PanicError {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// In no case does a caller wait for the outcome.
func TestA3_OnPanicReceivesEveryPanicOnce(t *testing.T) {
	fails := func(context.Context) (int, error) { panic(errBoom) }
	for name, c := range map[string]struct {
		do   func(ctx context.Context, s stint.Scheduler)
		want int
	}{
		"Go": {func(ctx context.Context, s stint.Scheduler) { stint.Go(ctx, s, fails) }, 1},
		"Then": {func(ctx context.Context, s stint.Scheduler) {
			f := stint.Go(ctx, s, func(context.Context) (int, error) { return 1, nil })
			stint.Then(ctx, s, f, func(context.Context, int) (int, error) { panic(errBoom) })
		}, 1},
		"Then of one that fails": {func(ctx context.Context, s stint.Scheduler) {
			stint.Then(ctx, s, stint.Go(ctx, s, fails), func(context.Context, int) (int, error) { return 1, nil })
		}, 1},
		"a group": {func(ctx context.Context, s stint.Scheduler) {
			g := stint.NewGroup(ctx, s)
			for range 2 {
				g.Go(func(context.Context) error { panic(errBoom) })
			}
		}, 1}, // the second is not called
		"a map": {func(ctx context.Context, s stint.Scheduler) {
			fn := func(context.Context, int) (int, error) { panic(errBoom) }
			for _, err := range stint.Map(ctx, s, slices.Values([]int{1}), fn) {
				if err == nil {
					panic("Map has lost the panic")
				}
				break
			}
		}, 1},
		"a teardown": {func(ctx context.Context, s stint.Scheduler) {
			s.Pause("until the teardowns are there")
			f := stint.Go(ctx, s, fails)
			f.Teardown(func() { panic(errBoom) })
			s.Resume()
		}, 2},
		"an error": {func(ctx context.Context, s stint.Scheduler) {
			stint.Go(ctx, s, func(context.Context) (int, error) { return 0, &stint.PanicError{Value: errBoom} })
		}, 0},
		"Goexit": {func(ctx context.Context, s stint.Scheduler) {
			stint.Go(ctx, s, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
		}, 0},
		"Run": {func(ctx context.Context, s stint.Scheduler) {
			_, _ = stint.Run(ctx, s, fails)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen panics
				s := stint.New(1, stint.Config{OnPanic: seen.add})
				c.do(t.Context(), s)
				synctest.Wait()
				all := seen.take()
				if len(all) != c.want {
					t.Errorf("OnPanic received %d panics, want %d: %v", len(all), c.want, all)
				}
				for _, e := range all {
					if !errors.Is(e, errBoom) || !strings.Contains(string(e.Stack), "panic_test.go") {
						t.Errorf("OnPanic received %v, want the value of the panic, with its stack", e)
					}
				}
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

// The hook is called while the slot is held and before the outcome can be seen.
func TestA3_OnPanicComesBeforeTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		s := stint.New(1, stint.Config{OnPanic: func(*stint.PanicError) { <-goOn }})
		f := stint.Go(t.Context(), s, func(context.Context) (int, error) { panic(errBoom) })
		synctest.Wait()
		wantCounts(t, s, 1, 0)
		select {
		case <-f.Done():
			t.Error("the outcome can be seen before OnPanic has returned")
		default:
		}
		close(goOn)
		if _, err := f.Wait(t.Context()); !errors.Is(err, errBoom) {
			t.Errorf("Wait: %v, want the panic", err)
		}

		goOn = make(chan struct{})
		g := stint.NewGroup(t.Context(), s)
		failed := make(chan struct{})
		g.Go(func(ctx context.Context) error {
			context.AfterFunc(ctx, func() { close(failed) })
			panic(errBoom)
		})
		synctest.Wait()
		select {
		case <-failed:
			t.Error("the group has failed before OnPanic has returned")
		default:
		}
		close(goOn)
		if err := g.Wait(); !errors.Is(err, errBoom) {
			t.Errorf("Wait of the group: %v, want the panic", err)
		}
		<-failed
	})
}

var errTeardown = errors.New("teardown")

// A hook that ends its goroutine, as t.FailNow does, loses neither slot nor outcome.
func TestA3_OnPanicMayEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{OnPanic: func(*stint.PanicError) { runtime.Goexit() }})
		for _, teardown := range []func(){func() {}, func() { panic(errTeardown) }} {
			registered := make(chan struct{}) // or Teardown calls it in this goroutine
			f := stint.Go(t.Context(), s, func(context.Context) (int, error) {
				<-registered
				panic(errBoom)
			})
			f.Teardown(teardown)
			close(registered)
			if _, err := f.Wait(t.Context()); !errors.Is(err, errBoom) {
				t.Errorf("Wait: %v, want the panic of the function", err)
			}
		}
		g := stint.NewGroup(t.Context(), s)
		g.Go(func(context.Context) error { panic(errBoom) })
		if err := g.Wait(); !errors.Is(err, errBoom) {
			t.Errorf("Wait of the group: %v, want the panic", err)
		}
		wantCounts(t, s, 0, 0)
	})
}
