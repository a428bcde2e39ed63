package stint_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

func TestA6_GoRefusesAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		f := stint.Go(ctx, s, never(t))
		if !settled(f) {
			t.Error("no outcome at once")
		}
		if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
			t.Errorf("Wait: %v, want the context's cause", err)
		}
	})
}

// Thousands of queued functions of one context, or with a context each, are
// answered when it ends, without a slot coming free.
func TestA6_EndOfContextEmptiesTheQueue(t *testing.T) {
	const n = 3000
	for _, name := range []string{"one context", "a context each", "values on top of one"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustAcquire(t, s)
				parent, cancel := context.WithCancelCause(t.Context())
				var gone, kept []*stint.Future[int]
				for i := range n {
					ctx := parent
					switch name {
					case "a context each":
						child, stop := context.WithCancel(parent)
						defer stop()
						ctx = child
					case "values on top of one":
						ctx = stint.WithPriority(parent, stint.Priority(i%7-3))
					}
					gone = append(gone, stint.Go(ctx, s, never(t)))
					kept = append(kept, stint.Go(t.Context(), s, value(i)))
				}
				cancel(errBoom)
				for _, f := range gone {
					if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
						t.Fatalf("Wait: %v, want the context's cause", err)
					}
				}
				if q := s.Stats().Queued; q != n {
					t.Errorf("%d queued, want the %d of another context", q, n)
				}
				permit.Release()
				for i, f := range kept {
					if v, err := f.Wait(t.Context()); v != i || err != nil {
						t.Fatalf("Wait = %d, %v; want %d", v, err, i)
					}
				}
				atRest(t, s)
			})
		})
	}
}

// A function that has its slot but has not begun counts as not called yet. The last look at the context
// is just before the call, so a context may end between the two: by chance, if the goroutine is preempted there.
// Without that look it happened to 10 to 150 of the 3,000 calls, and to 1,700 with the race detector.
func TestA6_EndOfContextBeforeTheCall(t *testing.T) {
	s := stint.New(1, stint.Config{})
	const calls = 3000
	afterEnd := 0
	for range calls {
		ctx, cancel := context.WithCancelCause(t.Context())
		permit := mustAcquire(t, s)
		var ended atomic.Bool
		f := stint.Go(ctx, s, func(context.Context) (bool, error) { return ended.Load(), nil })
		go permit.Release()
		cancel(errBoom)
		ended.Store(true)
		late, err := f.Wait(t.Context())
		if late {
			afterEnd++
		}
		if err != nil && !errors.Is(err, errBoom) {
			t.Fatalf("Wait: %v, want the context's cause", err)
		}
	}
	if afterEnd > calls/1000 {
		t.Errorf("%d of %d functions were called after their contexts had ended", afterEnd, calls)
	}
}

// The same, of the whole queue: the slot comes free in the moment of the end.
func TestA6_NoCallAfterTheEndOfTheContext(t *testing.T) {
	for range 50 {
		s := stint.New(1, stint.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		first := stint.Go(t.Context(), s, func(context.Context) (int, error) {
			cancel(errBoom)
			return 0, nil
		})
		var queued []*stint.Future[int]
		for range 100 {
			if f := stint.Go(ctx, s, untilDone); ctx.Err() == nil {
				queued = append(queued, f)
			}
		}
		_, _ = first.Wait(t.Context())
		for _, f := range queued {
			if _, err := f.Wait(t.Context()); err != errBoom { //nolint:errorlint // the very error
				t.Fatalf("Wait: %v, want boom", err)
			}
		}
	}
}

// ending is a context in the middle of its end: Err says so already, and Done,
// and the contexts derived from it, do not.
type ending struct {
	context.Context //nolint:containedctx // it is one

	ended atomic.Bool
}

func (e *ending) Err() error {
	if e.ended.Load() {
		return context.Canceled
	}
	return nil
}

// A context cancels its derived contexts one after the other. A function whose turn comes
// in between is not called, although its own context is not cancelled yet.
func TestA6_NoCallInTheMiddleOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		ctx := &ending{Context: t.Context()}
		f := stint.Go(ctx, s, never(t))
		_ = f.Done() // so that the function's context is one of its own
		ctx.ended.Store(true)
		permit.Release()
		if _, err := f.Wait(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait: %v", err)
		}
		atRest(t, s)
	})
}

// enders are the ways in which the context of a running function ends.
var enders = []struct {
	name string
	end  func(s stint.Scheduler, f *stint.Future[int], cancel context.CancelCauseFunc)
	want error
}{
	{"its parent's end", func(_ stint.Scheduler, _ *stint.Future[int], cancel context.CancelCauseFunc) {
		cancel(errBoom)
	}, errBoom},
	{"Future.Cancel", func(_ stint.Scheduler, f *stint.Future[int], _ context.CancelCauseFunc) {
		f.Cancel(errBoom)
	}, errBoom},
	{"Future.Cancel without a cause", func(_ stint.Scheduler, f *stint.Future[int], _ context.CancelCauseFunc) {
		f.Cancel(nil)
	}, context.Canceled},
	{"Close", func(s stint.Scheduler, _ *stint.Future[int], _ context.CancelCauseFunc) {
		s.Close()
	}, stint.ErrClosed},
}

func TestA6_ContextOfARunningFunctionEnds(t *testing.T) {
	type key struct{}
	for _, ender := range enders {
		for _, early := range []bool{true, false} { // whether the function asks for Done before the end
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "inherited"))
				defer cancel(nil)
				ended := make(chan struct{})
				f := stint.Go(ctx, s, func(ctx context.Context) (int, error) {
					if early && ctx.Done() == nil {
						t.Error("the context has no Done channel")
					}
					if ctx.Err() != nil || context.Cause(ctx) != nil {
						t.Errorf("before: %v, %v", ctx.Err(), context.Cause(ctx))
					}
					<-ended
					if err := ctx.Err(); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: Err() = %v", ender.name, err)
					}
					if ctx.Value(key{}) != "inherited" {
						t.Error("the context has lost its values")
					}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
				synctest.Wait()
				ender.end(s, f, cancel)
				close(ended)
				synctest.Wait() // so that the function looks before Wait has made it a Done channel

				if _, err := f.Wait(context.WithoutCancel(ctx)); err != ender.want { //nolint:errorlint // the very error
					t.Errorf("%s: the cause is %v, want %v", ender.name, err, ender.want)
				}
				atRest(t, s)
			})
		}
	}
}

// The function's context is derived from like any other, also by packages that
// know nothing of it; and none of that costs a goroutine.
func TestA6_ContextsDerivedFromTheFunctions(t *testing.T) {
	for _, ender := range enders {
		t.Run(ender.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var after atomic.Int32
				var derived []context.Context
				f := stint.Go(ctx, s, func(ctx context.Context) (int, error) {
					before := runtime.NumGoroutine()
					for range 100 {
						child, stop := context.WithCancel(ctx)
						defer stop()
						timed, stop := context.WithTimeout(child, time.Hour)
						defer stop()
						context.AfterFunc(timed, func() { after.Add(1) })
						derived = append(derived, child, timed)
					}
					if n := runtime.NumGoroutine() - before; n > 5 { // of other bubbles' tests perhaps
						t.Errorf("%d goroutines for derived contexts", n)
					}
					<-derived[0].Done()
					for _, d := range derived {
						<-d.Done()
						if cause := context.Cause(d); cause != ender.want { //nolint:errorlint // the very error
							t.Errorf("the cause of a derived context is %v, want %v", cause, ender.want)
						}
					}
					return 0, nil
				})
				synctest.Wait()
				ender.end(s, f, cancel)
				_, _ = f.Wait(context.WithoutCancel(ctx))
				synctest.Wait()
				if n := after.Load(); n != 100 {
					t.Errorf("%d of 100 functions were called after their contexts", n)
				}
			})
		})
	}
}

// A timeout of a derived context ends that one alone.
func TestA6_DerivedTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			timed, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			<-timed.Done()
			if !errors.Is(context.Cause(timed), context.DeadlineExceeded) || ctx.Err() != nil {
				t.Errorf("derived %v, own %v", context.Cause(timed), ctx.Err())
			}
			return 1, nil
		})
		if _, err := f.Wait(t.Context()); err != nil {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestA6_DeadlineOfTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		running := stint.Go(ctx, s, func(ctx context.Context) (int, error) {
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Minute {
				t.Errorf("Deadline() = %v, %v", at, ok)
			}
			return untilDone(ctx)
		})
		queued := stint.Go(ctx, s, never(t))
		for _, f := range []*stint.Future[int]{running, queued} {
			if _, err := f.Wait(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait: %v", err)
			}
		}
		atRest(t, s)
	})
}

// Whatever a function leaves behind sees that its time is over, whether it
// looks at Err or at Done.
func TestA6_ContextEndsWithItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		var asked, silent context.Context
		f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			asked = ctx //nolint:fatcontext // to look at it afterwards
			_ = ctx.Done()
			return 0, nil
		})
		g := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			silent = ctx //nolint:fatcontext // to look at it afterwards
			return 0, nil
		})
		_, _ = f.Wait(t.Context())
		_, _ = g.Wait(t.Context())
		for _, ctx := range []context.Context{asked, silent} {
			if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled { //nolint:errorlint // the very error
				t.Errorf("after the function, Err() = %v", ctx.Err())
			}
			<-ctx.Done()
			if _, err := stint.Go(ctx, s, never(t)).Wait(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("Go with the context of a function that has ended: %v", err)
			}
		}
	})
}

// What a function starts with its own context ends with it, queued or running.
func TestA6_ChildrenEndWithTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		var running, queued *stint.Future[int]
		f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			running = stint.Go(ctx, s, untilDone)
			queued = stint.Go(ctx, s, untilDone)
			return 0, nil
		})
		_, _ = f.Wait(t.Context())
		for _, f := range []*stint.Future[int]{running, queued} {
			if _, err := f.Wait(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("Wait: %v, want Canceled", err)
			}
		}
		atRest(t, s)
	})
}

func TestA6_CloseAnswersEveryFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Queue: 1})
		running := stint.Go(t.Context(), s, untilDone)
		queued := stint.Go(t.Context(), s, never(t))
		var blocked *stint.Future[int]
		go func() { blocked = stint.Go(t.Context(), s, never(t)) }()
		synctest.Wait()
		s.Close()
		synctest.Wait()
		late := stint.Go(t.Context(), s, never(t))
		for _, f := range []*stint.Future[int]{running, queued, blocked, late} {
			if _, err := f.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
				t.Errorf("Wait: %v, want ErrClosed", err)
			}
		}
		atRest(t, s)
	})
}

// The cancellation of a function that runs takes no other one out of the queue.
func TestA6_CancelOfWhatRunsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := stint.New(1, stint.Config{}), make(chan struct{})
		low := s.At(stint.Lowest)
		runs := stint.Go(t.Context(), low, func(context.Context) (int, error) { <-end; return 0, nil })
		synctest.Wait()
		waits := stint.Go(t.Context(), low, value(1))
		runs.Cancel(nil)
		synctest.Wait()
		if settled(waits) {
			t.Error("another function was taken out of the queue")
		}
		close(end)
		wantAllFree(t, s)
	})
}
