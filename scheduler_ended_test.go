package stint_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stintgo/stint"
)

// Why of a call that has settled finds the scheduler through the entry of the call, which later
// calls use again. The race detector sees it if they write there what Why reads without the lock:
// each goroutine that calls Why starts before those calls, so that nothing orders the two.
func TestA6_WhyOfAnEndedCallWhileItsEntryIsUsedAgain(t *testing.T) {
	s := stint.New(2, stint.Config{}).Key("a")
	for range 300 {
		f := stint.Go(t.Context(), s, one)
		if _, err := f.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		var why sync.WaitGroup
		why.Go(func() {
			if _, waits := f.Why(); waits {
				t.Error("Why says that a settled call waits")
			}
		})
		for range 5 {
			if _, err := stint.Run(t.Context(), s, one); err != nil {
				t.Fatal(err)
			}
		}
		why.Wait()
	}
	checkAllFree(t, s)
}

// Cancel refuses a queued job with a key or ends its function's context; either may recycle the
// entry before Cancel has returned.
func TestA6_CancelOfAJobWithAKeyThatMayHaveStarted(t *testing.T) {
	s := stint.New(2, stint.Config{}).Key("a")
	for range 1000 {
		f := stint.Go(t.Context(), s, one)
		f.Cancel(errAsked)
		if n, err := f.Wait(t.Context()); err == nil && n != 1 || err != nil && !errors.Is(err, errAsked) {
			t.Fatalf("outcome is %d, %v", n, err)
		}
	}
}

// A goroutine may use the context of a function with a key after Run has returned.
func TestA6_ContextOfAnEndedRun(t *testing.T) {
	s := stint.New(2, stint.Config{}).Key("a")
	var all sync.WaitGroup
	for range 300 {
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			all.Go(func() {
				for range 100 {
					if err := ctx.Err(); err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("Err of the context is %v", err)
					}
				}
			})
			return 1, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// Jobs that are refused at once settle in the order of their arrival: when their context
// ends, and when the queue is cleared or closed.
func TestA6_JobsThatAreRefusedSettleInOrder(t *testing.T) {
	for name, end := range map[string]func(s stint.Scheduler, cancel func()){
		"context": func(_ stint.Scheduler, cancel func()) { cancel() },
		"Clear":   func(s stint.Scheduler, _ func()) { s.Clear() },
		"Close":   func(s stint.Scheduler, _ func()) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustTry(t, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				views := []stint.Scheduler{s, s.Key("a"), s, s.At(stint.Highest), s.Key("b"), s, s.At(stint.Lowest)}
				var order []int
				for i, view := range views {
					f := stint.Go(ctx, view, never(t))
					f.Teardown(func() { order = append(order, i) })
				}
				end(s, cancel)
				synctest.Wait()
				if want := []int{0, 1, 2, 3, 4, 5, 6}; !slices.Equal(order, want) {
					t.Errorf("the jobs settled in the order %v, want %v", order, want)
				}
				releaseSlot(permit)
				if st := s.Stats(); st.Running != 0 || st.Queued != 0 {
					t.Errorf("%d run and %d are queued, want none", st.Running, st.Queued)
				}
			})
		})
	}
}

// asking is a context whose Value method uses a scheduler.
type asking struct {
	context.Context //nolint:containedctx // it is a context itself

	s stint.Scheduler
}

func (a asking) Value(key any) any {
	a.s.Stats()
	return a.Context.Value(key)
}

// The methods of a context may use the scheduler: it calls them without its lock.
func TestA6_ContextThatUsesTheSchedulerEnds(t *testing.T) {
	for name, submit := range map[string]func(context.Context, stint.Scheduler) <-chan struct{}{
		"Go": func(ctx context.Context, s stint.Scheduler) <-chan struct{} {
			return stint.Go(ctx, s, one).Done()
		},
		"Go with a key": func(ctx context.Context, s stint.Scheduler) <-chan struct{} {
			return stint.Go(ctx, s.Key("a"), one).Done()
		},
		"Group": func(ctx context.Context, s stint.Scheduler) <-chan struct{} {
			g := stint.NewGroup(ctx, s)
			g.Go(func(context.Context) error { return nil })
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = g.Wait()
			}()
			return done
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			permit := mustTry(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			done := submit(asking{ctx, s}, s)
			cancel()
			select { // outside a bubble, where a goroutine that waits for a mutex is seen as running
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the work of an ended context has not ended after 10 s")
			}
			permit.Release()
			checkAllFree(t, s)
		})
	}
}

// futureOfObject returns the future that submit makes of a new object, and a weak pointer to the object.
//
//go:noinline
func futureOfObject(ctx context.Context, submit func(context.Context, *[64]int) *stint.Future[int]) (
	*stint.Future[int], weak.Pointer[[64]int],
) {
	object := new([64]int)
	return submit(ctx, object), weak.Make(object)
}

// A future keeps its value, but not the function that it has not called.
func TestD6_RefusedFutureLetsGoOfItsFunction(t *testing.T) {
	s := stint.New(1, stint.Config{})
	defer mustTry(t, s).Release()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	submit := func(s stint.Scheduler) func(context.Context, *[64]int) *stint.Future[int] {
		return func(ctx context.Context, object *[64]int) *stint.Future[int] {
			return stint.Go(ctx, s, func(context.Context) (int, error) { return object[0], nil })
		}
	}
	then := func(s stint.Scheduler) func(context.Context, *[64]int) *stint.Future[int] {
		return func(ctx context.Context, object *[64]int) *stint.Future[int] {
			f := stint.Go(t.Context(), s, one)
			return stint.Then(ctx, s, f, func(context.Context, int) (int, error) { return object[0], nil })
		}
	}
	shut := stint.New(1, stint.Config{})
	shut.Close()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // a row of a table
		submit func(context.Context, *[64]int) *stint.Future[int]
	}{
		"cancelled":               {t.Context(), submit(s)},
		"cancelled, with a key":   {t.Context(), submit(s.Key("a"))},
		"refused":                 {t.Context(), submit(shut)},
		"ended context":           {done, submit(s)},
		"cancelled continuation":  {t.Context(), then(s)},
		"refused continuation":    {t.Context(), then(shut)},
		"continuation of a key":   {t.Context(), then(s.Key("a"))},
		"continuation, ended ctx": {done, then(s)},
	} {
		t.Run(name, func(t *testing.T) {
			f, object := futureOfObject(c.ctx, c.submit)
			f.Cancel(errAsked)
			if _, err := f.Wait(t.Context()); err == nil {
				t.Fatal("the future has a value")
			}
			if !collected(object) {
				t.Error("the future keeps what the function refers to")
			}
			runtime.KeepAlive(f)
		})
	}
}

// continued returns the continuation that link makes of a new future, when it has settled, and a
// weak pointer to the future.
//
//go:noinline
func continued(t *testing.T, link func(*stint.Future[int]) *stint.Future[int]) (
	*stint.Future[int], weak.Pointer[stint.Future[int]],
) {
	t.Helper()
	p := stint.NewPromise[int]()
	next := link(p.Future())
	p.Resolve(1)
	<-next.Done()
	return next, weak.Make(p.Future())
}

// A future keeps its own outcome, but not the future that it continued.
func TestD6_ContinuationLetsGoOfWhatItContinued(t *testing.T) {
	s, ctx := stint.New(1, stint.Config{}), t.Context()
	add := func(_ context.Context, n int) (int, error) { return n + 1, nil }
	fail := func(context.Context, int) (int, error) { return 0, errBoom }
	for name, link := range map[string]func(*stint.Future[int]) *stint.Future[int]{
		"Then": func(f *stint.Future[int]) *stint.Future[int] { return stint.Then(ctx, s, f, add) },
		"Then of a failure": func(f *stint.Future[int]) *stint.Future[int] {
			return stint.Then(ctx, s, stint.Then(ctx, s, f, fail), neverThen(t))
		},
		"Catch of a value": func(f *stint.Future[int]) *stint.Future[int] {
			return stint.Catch(ctx, s, f, neverCatch(t))
		},
		"Catch of a failure": func(f *stint.Future[int]) *stint.Future[int] {
			return stint.Catch(ctx, s, stint.Then(ctx, s, f, fail), instead(2))
		},
		"cancelled": func(f *stint.Future[int]) *stint.Future[int] {
			next := stint.Then(ctx, s, f, neverThen(t))
			next.Cancel(errAsked)
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			next, before := continued(t, link)
			if !collected(before) {
				t.Error("the future keeps what it continued")
			}
			runtime.KeepAlive(next)
		})
	}
}

// Each continuation of a future settles, though a teardown of one ends the goroutine; and those of
// the continuation itself settle before the next one.
func TestD6_ContinuationsSettleWhenATeardownExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for exits := range 9 {
			s := stint.New(1, stint.Config{})
			permit := mustTry(t, s)
			f := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 0, errBoom })
			var order []int
			follow := func(f *stint.Future[int], i int) *stint.Future[int] {
				next := stint.Then(t.Context(), s, f, neverThen(t))
				next.Teardown(func() {
					order = append(order, i)
					if i == exits || exits == 8 {
						runtime.Goexit()
					}
				})
				return next
			}
			for i := range 2 {
				next := follow(f, 4*i)
				follow(follow(next, 4*i+1), 4*i+2)
				follow(next, 4*i+3)
			}
			releaseSlot(permit)
			if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(order, want) {
				t.Errorf("continuation %d exits: %v settled, want %v", exits, order, want)
			}
			wantAllFree(t, s)
		}
	})
}
