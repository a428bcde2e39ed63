package stint_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

func does(counter *atomic.Int32) func(context.Context) error {
	return func(context.Context) error {
		counter.Add(1)
		return nil
	}
}

// neverRuns is a group's function that no test expects to be called.
func neverRuns(tb testing.TB) func(context.Context) error {
	tb.Helper()
	return func(context.Context) error {
		tb.Error("the function was called")
		return nil
	}
}

// waitCause waits for its context and fails with the cause.
func waitCause(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestD7_WaitWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		var done atomic.Int32
		gate := make(chan struct{})
		for range 10 {
			g.Go(func(ctx context.Context) error {
				if n := s.Stats().Running; n > 3 {
					t.Errorf("%d running, limit 3", n)
				}
				<-gate
				if ctx.Err() != nil {
					t.Errorf("the context has ended: %v", context.Cause(ctx))
				}
				g.Go(does(&done)) // a function may add to its own group
				return does(&done)(ctx)
			})
		}
		waited := make(chan error)
		go func() { waited <- g.Wait() }()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("Wait returned while functions ran: %v", err)
		default:
		}
		close(gate)
		if err := <-waited; err != nil || done.Load() != 20 {
			t.Errorf("Wait: %v after %d of 20 functions", err, done.Load())
		}
		atRest(t, s)
	})
}

func TestD7_EmptyGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		if err := stint.NewGroup(t.Context(), s).Wait(); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestD7_FirstErrorCancelsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		fail := make(chan struct{})
		var cause error
		g.Go(func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return errors.New("a later error")
		})
		g.Go(func(context.Context) error {
			<-fail
			return errBoom
		})
		for range 1000 {
			g.Go(neverRuns(t))
		}
		synctest.Wait() // the first has its context
		close(fail)
		for range 2 {
			if err := g.Wait(); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait: %v, want boom", err)
			}
		}
		if cause != errBoom { //nolint:errorlint // the very error
			t.Errorf("the others' context ended with %v, want boom", cause)
		}
		atRest(t, s)
	})
}

// The functions of two groups wait in turns. The end of one group takes out its own
// alone.
func TestD7_GroupsEndApart(t *testing.T) {
	for _, view := range []func(stint.Scheduler) stint.Scheduler{
		func(s stint.Scheduler) stint.Scheduler { return s },
		func(s stint.Scheduler) stint.Scheduler { return s.Key("a") },
	} {
		synctest.Test(t, func(t *testing.T) {
			const n = 5
			s := stint.New(1, stint.Config{})
			permit := mustTry(t, s)
			ctx, cancel := context.WithCancelCause(t.Context())
			ends, stays := stint.NewGroup(ctx, view(s)), stint.NewGroup(t.Context(), view(s))
			ran := 0
			for range n {
				ends.Go(neverRuns(t))
				stays.Go(func(context.Context) error {
					ran++
					return nil
				})
			}
			ends.Go(neverRuns(t))
			cancel(errBoom)
			if err := ends.Wait(); err != errBoom { //nolint:errorlint // the very error
				t.Errorf("Wait of the group that ends: %v, want boom", err)
			}
			if q := s.Stats().Queued; q != n {
				t.Errorf("%d queued, want the %d of the other group", q, n)
			}
			permit.Release()
			if err := stays.Wait(); err != nil || ran != n {
				t.Errorf("Wait of the other group: %v after %d calls, want %d calls", err, ran, n)
			}
			atRest(t, s)
		})
	}
}

// The slot of the function that fails goes to the next one before the queue
// has been emptied; that one is not called all the same.
func TestD7_NoCallAfterTheFailure(t *testing.T) {
	for range 300 {
		s := stint.New(1, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		var failed atomic.Bool
		g.Go(func(context.Context) error {
			failed.Store(true)
			return errBoom
		})
		for range 20 {
			g.Go(func(ctx context.Context) error {
				if failed.Load() {
					t.Error("a function was called after the group had failed")
				}
				return nil
			})
		}
		if err := g.Wait(); err != errBoom { //nolint:errorlint // the very error
			t.Fatalf("Wait: %v, want boom", err)
		}
		if t.Failed() {
			return
		}
	}
}

func TestD7_GoAfterFailureIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		g.Go(func(context.Context) error { return errBoom })
		synctest.Wait()
		g.Go(neverRuns(t))
		if err := g.Wait(); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want boom", err)
		}
	})
}

func TestD7_GoAfterWaitPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stint.NewGroup(t.Context(), stint.New(1, stint.Config{}))
		_ = g.Wait()
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "Go after Wait") {
				t.Errorf("Go after Wait: %s", text)
			}
		}()
		g.Go(neverRuns(t))
	})
}

func TestD7_PanicSurfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		g.Go(func(ctx context.Context) error {
			_, err := panicsInside(ctx)
			return err
		})
		g.Go(neverRuns(t))
		err := g.Wait()
		var panicked *stint.PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, errBoom) {
			t.Fatalf("Wait: %v, want a PanicError that wraps boom", err)
		}
		if !strings.Contains(string(panicked.Stack), "panicsInside") {
			t.Errorf("the stack is not that of the panic:\n%s", panicked.Stack)
		}
		atRest(t, s)
	})
}

func TestA3_GroupFunctionExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		after := stint.Go(t.Context(), s.At(stint.Lowest), value(1))
		g.Go(func(context.Context) error {
			runtime.Goexit()
			return nil
		})
		if err := g.Wait(); err != stint.ErrGoexit { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want ErrGoexit", err)
		}
		if v, err := after.Wait(t.Context()); v != 1 || err != nil {
			t.Errorf("the next one: %d, %v", v, err)
		}
		atRest(t, s)
	})
}

func TestA6_GroupEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(stint.Scheduler, *stint.Group, context.CancelCauseFunc)
		want error
	}{
		{"its parent's end", func(_ stint.Scheduler, _ *stint.Group, cancel context.CancelCauseFunc) {
			cancel(errBoom)
		}, errBoom},
		{"Group.Cancel", func(_ stint.Scheduler, g *stint.Group, _ context.CancelCauseFunc) {
			g.Cancel(errBoom)
		}, errBoom},
		{"Group.Cancel without a cause", func(_ stint.Scheduler, g *stint.Group, _ context.CancelCauseFunc) {
			g.Cancel(nil)
		}, context.Canceled},
		{"Close", func(s stint.Scheduler, _ *stint.Group, _ context.CancelCauseFunc) {
			s.Close()
		}, stint.ErrClosed},
	} {
		for _, queued := range []int{0, 2000} {
			t.Run(fmt.Sprint(c.name, " with ", queued, " queued"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(2, stint.Config{})
					ctx, cancel := context.WithCancelCause(t.Context())
					g := stint.NewGroup(ctx, s)
					var causes [2]error
					for i := range causes {
						g.Go(func(ctx context.Context) error {
							before := runtime.NumGoroutine()
							child, stop := context.WithCancel(ctx)
							defer stop()
							if runtime.NumGoroutine() > before+1 {
								t.Error("a derived context started a goroutine")
							}
							<-child.Done()
							causes[i] = context.Cause(child)
							return context.Cause(ctx)
						})
					}
					for range queued {
						g.Go(neverRuns(t))
					}
					synctest.Wait()
					c.end(s, g, cancel)
					if err := g.Wait(); err != c.want { //nolint:errorlint // the very error
						t.Errorf("Wait: %v, want %v", err, c.want)
					}
					for _, cause := range causes {
						if cause != c.want { //nolint:errorlint // the very error
							t.Errorf("the functions' context ended with %v, want %v", cause, c.want)
						}
					}
					atRest(t, s)
					cancel(nil)
				})
			})
		}
	}
}

func TestA6_GroupOfAClosedScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		s.Close()
		g := stint.NewGroup(t.Context(), s)
		g.Go(neverRuns(t))
		if err := g.Wait(); !errors.Is(err, stint.ErrClosed) {
			t.Errorf("Wait: %v, want ErrClosed", err)
		}
	})
}

// Code between NewGroup and Wait that panics leaves no function behind, if Wait is deferred.
func TestD7_DeferredWaitOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		var ended atomic.Bool
		value := panicOf(func() {
			g := stint.NewGroup(t.Context(), s)
			defer func() {
				g.Cancel(nil)
				_ = g.Wait()
			}()
			g.Go(func(ctx context.Context) error {
				err := waitCause(ctx)
				ended.Store(true)
				return err
			})
			g.Go(neverRuns(t))
			synctest.Wait()
			panic(errBoom)
		})
		if value != any(errBoom) || !ended.Load() {
			t.Errorf("panicked with %v, and the functions had ended: %t", value, ended.Load())
		}
		atRest(t, s)
	})
}

// Groups in groups under a limit of 1: each function that waits suspends its slot.
func TestA4_NestedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		var leaves, running atomic.Int32
		var tree func(depth int) func(context.Context) error
		tree = func(depth int) func(context.Context) error {
			return func(ctx context.Context) error {
				if depth == 0 {
					if running.Add(1) > 1 {
						t.Error("two functions ran at once under a limit of 1")
					}
					runtime.Gosched()
					running.Add(-1)
					return does(&leaves)(ctx)
				}
				g := stint.NewGroup(ctx, s)
				for range 3 {
					g.Go(tree(depth - 1))
				}
				return g.Wait()
			}
		}
		if err := tree(5)(t.Context()); err != nil || leaves.Load() != 243 {
			t.Errorf("%v after %d of 243 leaves", err, leaves.Load())
		}
		atRest(t, s)
	})
}

func TestA4_GroupInsideRunInsideGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		var leaves atomic.Int32
		inner := func(ctx context.Context) (int, error) {
			g := stint.NewGroup(ctx, s)
			for range 3 {
				g.Go(does(&leaves))
			}
			return 1, g.Wait()
		}
		g := stint.NewGroup(t.Context(), s)
		for range 4 {
			g.Go(func(ctx context.Context) error {
				_, err := stint.Run(ctx, s, inner)
				if err == nil {
					_, err = stint.Go(ctx, s, inner).Wait(ctx)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil || leaves.Load() != 24 {
			t.Errorf("Wait: %v after %d of 24 leaves", err, leaves.Load())
		}
		atRest(t, s)
	})
}

// A goroutine that a function leaves behind holds no slot, although it has the
// function's context: not that of the next function of the worker either.
func TestA4_LeftBehindGoroutineHasNoSlot(t *testing.T) {
	for _, next := range []string{"a future", "another group", "the same group"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustAcquire(t, s)
				g, other := stint.NewGroup(t.Context(), s), stint.NewGroup(t.Context(), s)
				var running atomic.Int32
				alone := func(context.Context) (int, error) {
					if running.Add(1) > 1 {
						t.Error("two functions ran at once under a limit of 1")
					}
					time.Sleep(time.Second) // until all the others wait
					running.Add(-1)
					return 0, nil
				}
				asError := func(ctx context.Context) error {
					_, err := alone(ctx)
					return err
				}
				left, begun := make(chan error), make(chan struct{})
				g.Go(func(ctx context.Context) error {
					go func() {
						<-begun
						_, err := stint.Run(ctx, s, alone)
						left <- err
					}()
					return nil
				})
				begin := func(fn func(context.Context) error) func(context.Context) error {
					return func(ctx context.Context) error {
						close(begun)
						return fn(ctx)
					}
				}
				switch next {
				case "a future":
					stint.Go(t.Context(), s, func(ctx context.Context) (int, error) { return 0, begin(asError)(ctx) })
				case "another group":
					other.Go(begin(asError))
				default:
					g.Go(begin(asError))
				}
				permit.Release()
				if err := <-left; err != nil {
					t.Errorf("Run: %v", err)
				}
				_, _ = g.Wait(), other.Wait()
				atRest(t, s)
			})
		})
	}
}

func TestD7_WaitFromManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		g := stint.NewGroup(t.Context(), s)
		for range 100 {
			g.Go(func(context.Context) error { return errBoom })
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := g.Wait(); err != errBoom { //nolint:errorlint // the very error
					t.Errorf("Wait: %v", err)
				}
			})
		}
		wg.Wait()
		atRest(t, s)
	})
}

// Under a load that keeps the workers busy, a group's Go allocates nothing.
func TestD7_GoAllocatesNothing(t *testing.T) {
	const batch = 2000
	s := stint.New(4, stint.Config{})
	g := stint.NewGroup(t.Context(), s)
	none := func(context.Context) error { return nil }
	allocs := testing.AllocsPerRun(20, func() {
		for range batch {
			g.Go(none)
		}
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if per := allocs / batch; per > 0.05 {
		t.Errorf("Group.Go makes %.3f allocations, want 0", per)
	}
}
