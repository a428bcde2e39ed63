package stint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// waits are the ways in which a function may wait for n calls of fn on slots
// of its own scheduler.
var waits = []struct {
	name string
	call func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error
}{
	{"Run", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		for range n {
			if _, err := stint.Run(ctx, s, valued(fn)); err != nil {
				return err
			}
		}
		return nil
	}},
	{"RunWith", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		call := func(ctx context.Context, _ string) (int, error) { return 0, fn(ctx) }
		for range n {
			if _, err := stint.RunWith(ctx, s, call, ""); err != nil {
				return err
			}
		}
		return nil
	}},
	{"Future", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		var futures []*stint.Future[int]
		for range n {
			futures = append(futures, stint.Go(ctx, s, valued(fn)))
		}
		for _, f := range futures {
			if _, err := f.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}},
	{"Group", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		g := stint.NewGroup(ctx, s)
		for range n {
			g.Go(fn)
		}
		return g.Wait()
	}},
	{"Map", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		call := func(ctx context.Context, _ int) (int, error) { return 0, fn(ctx) }
		for _, err := range stint.Map(ctx, s, slices.Values(make([]int, n)), call) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"MapUnordered", func(ctx context.Context, s stint.Scheduler, n int, fn func(context.Context) error) error {
		call := func(ctx context.Context, _ int) (int, error) { return 0, fn(ctx) }
		for _, err := range stint.MapUnordered(ctx, s, slices.Values(make([]int, n)), call) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
}

// busy is a function that checks, while it is inside, that no more slots are in
// use than there are.
func busy(t *testing.T, s stint.Scheduler, in *gauge) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		in.enter()
		defer in.leave()
		if st := s.Stats(); st.Running > st.Limit {
			t.Errorf("%d slots of %d are in use", st.Running, st.Limit)
		}
		time.Sleep(time.Second)
		return nil
	}
}

// Every form within every form, three deep, under limits of 1 and more, with
// and without others that want the same slots.
func TestA4_NestedNeverDeadlocks(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		for _, outer := range waits {
			for _, inner := range waits {
				t.Run(fmt.Sprintf("%d/%s/%s", limit, outer.name, inner.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := stint.New(limit, stint.Config{})
						var in gauge
						var wg sync.WaitGroup
						for range 3 {
							wg.Go(func() {
								err := outer.call(t.Context(), s, 2, func(ctx context.Context) error {
									return inner.call(ctx, s, 3, func(ctx context.Context) error {
										return inner.call(ctx, s, 2, busy(t, s, &in))
									})
								})
								if err != nil {
									t.Error(err)
								}
							})
						}
						wg.Wait()
						if in.most > limit {
							t.Errorf("%d were inside at once, above the limit", in.most)
						}
						wantAllFree(t, s)
					})
				})
			}
		}
	}
}

// A function that waits with a context that has ended does not wait, so it keeps its slot.
func TestA4_WaitWithAnEndedContextKeepsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		var other *stint.Future[int]
		began := time.Now()
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			other = stint.Go(t.Context(), s, func(context.Context) (int, error) {
				time.Sleep(time.Hour)
				return 0, nil
			})
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errBoom)
			if _, err := other.Wait(ctx); !errors.Is(err, errBoom) {
				t.Errorf("Wait: %v, want boom", err)
			}
			if late := time.Since(began); late != 0 {
				t.Errorf("Wait returned after %v", late)
			}
			return 0, nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := other.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantAllFree(t, s)
	})
}

// Several goroutines of one function may wait at the same time; the function
// has its slot again when the last of them goes on.
func TestA4_GoroutinesOfOneFunction(t *testing.T) {
	for _, way := range waits {
		for limit := 1; limit <= 2; limit++ {
			t.Run(fmt.Sprintf("%s/%d", way.name, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(limit, stint.Config{})
					var in gauge
					_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
						var wg sync.WaitGroup
						for range 3 {
							wg.Go(func() {
								if err := way.call(ctx, s, 3, busy(t, s, &in)); err != nil {
									t.Error(err)
								}
							})
						}
						wg.Wait()
						if got := s.Stats().Running; got != 1 {
							t.Errorf("%d slots in use after all have come back, want 1", got)
						}
						return 0, nil
					})
					if err != nil || in.most > limit {
						t.Errorf("%d inside of %d, error is %v", in.most, limit, err)
					}
					wantAllFree(t, s)
				})
			})
		}
	}
}

// While a function has suspended its slot, nothing of the scheduler may run at all.
// Its other goroutines are part of it all the same.
func TestA4_GoroutineThatWaitsWhileNothingRuns(t *testing.T) {
	for _, way := range waits {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
					s.Pause("the test")
					short, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					first := stint.Go(ctx, s, nothing)
					var wg sync.WaitGroup
					wg.Go(func() {
						time.Sleep(time.Second) // the function's slot is suspended by now
						if err := way.call(ctx, s, 1, func(context.Context) error { return nil }); err != nil {
							t.Error(err)
						}
					})
					_, _ = first.Wait(short)
					go func() {
						time.Sleep(time.Hour)
						s.Resume()
					}()
					wg.Wait()
					return first.Wait(ctx)
				})
				if err != nil {
					t.Error(err)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestA4_NestedWithKeys(t *testing.T) {
	for _, keys := range [][2]string{{"a", "a"}, {"a", "b"}, {"a", ""}, {"", "a"}} {
		for _, way := range waits {
			t.Run(fmt.Sprintf("%q in %q/%s", keys[1], keys[0], way.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(1, stint.Config{PerKey: 1})
					var in gauge
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							_, err := stint.Run(t.Context(), s.Key(keys[0]), func(ctx context.Context) (int, error) {
								return 0, way.call(ctx, s.Key(keys[1]), 3, busy(t, s, &in))
							})
							if err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					if in.most > 1 {
						t.Errorf("%d were inside at once", in.most)
					}
					wantAllFree(t, s)
				})
			})
		}
	}
}

// Two functions of different keys that each call the other's key: each suspends
// the place in its key too, so neither waits for the other.
func TestA4_NestedAcrossKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{PerKey: 1})
		var wg sync.WaitGroup
		for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
			wg.Go(func() {
				_, err := stint.Run(t.Context(), s.Key(keys[0]), func(ctx context.Context) (int, error) {
					time.Sleep(time.Second)
					return stint.Run(ctx, s.Key(keys[1]), func(context.Context) (int, error) {
						time.Sleep(time.Second)
						return 0, nil
					})
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantAllFree(t, s)
	})
}

func TestA4_NestedWithWeights(t *testing.T) {
	for _, weights := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 3}, {3, 2}, {3, 3}} {
		for _, way := range waits {
			t.Run(fmt.Sprintf("%d in %d/%s", weights[1], weights[0], way.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(3, stint.Config{})
					var in gauge
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							_, err := stint.Run(t.Context(), s.Weight(weights[0]), func(ctx context.Context) (int, error) {
								return 0, way.call(ctx, s.Weight(weights[1]), 2, busy(t, s, &in))
							})
							if err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					wantAllFree(t, s)
				})
			})
		}
	}
}

// A heavy function that wants its slots back has them before what is queued,
// however long the queue of lighter work is.
func TestA4_HeavyFunctionIsNotStarvedByTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		var calls atomic.Int32
		outer := stint.Go(t.Context(), s.Weight(2), func(ctx context.Context) (int, error) {
			_, err := stint.Run(ctx, s, func(context.Context) (int, error) {
				time.Sleep(time.Second)
				return 0, nil
			})
			return int(calls.Load()), err
		})
		synctest.Wait()
		for range 20 {
			stint.Go(t.Context(), s, func(context.Context) (int, error) {
				calls.Add(1)
				time.Sleep(3 * time.Second / 2)
				return 0, nil
			})
		}
		if before, err := outer.Wait(t.Context()); before != 1 || err != nil {
			t.Errorf("%d of the queue started before it had its slots back, want 1; error is %v", before, err)
		}
		time.Sleep(time.Hour)
		wantAllFree(t, s)
	})
}

// What a function calls is part of it, so it runs through a pause and a drain.
func TestA4_NestedRunThroughPauseAndDrain(t *testing.T) {
	for name, during := range map[string]func(s stint.Scheduler){
		"Pause":     func(s stint.Scheduler) { s.Pause("the test") },
		"Drain":     func(s stint.Scheduler) { go func() { _ = s.Drain(context.Background()) }() },
		"Resize(1)": func(s stint.Scheduler) { s.Resize(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(2, stint.Config{PerKey: 1})
				begin := make(chan struct{})
				var futures []*stint.Future[int]
				for _, key := range []string{"a", "b"} {
					futures = append(futures, stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
						<-begin
						for range 3 {
							if _, err := stint.Run(ctx, s.Key(key), nothing); err != nil {
								return 0, err
							}
						}
						return 0, nil
					}))
				}
				synctest.Wait()
				during(s)
				synctest.Wait()
				close(begin)
				for _, f := range futures {
					if _, err := f.Wait(t.Context()); err != nil {
						t.Errorf("error is %v", err)
					}
				}
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

// In a drain also what cannot be handed the slot straight down still runs: the
// call of a second goroutine, and one that is heavier than the suspended slot.
func TestA4_NestedRunsThatQueueInADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		begin := make(chan struct{})
		outer := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			<-begin
			errs := make(chan error, 3)
			for _, weight := range []int{1, 1, 2} {
				go func() {
					_, err := stint.Run(ctx, s.Weight(weight), func(context.Context) (int, error) {
						time.Sleep(time.Second)
						return 0, nil
					})
					errs <- err
				}()
			}
			return 0, errors.Join(<-errs, <-errs, <-errs)
		})
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		close(begin)
		if _, err := outer.Wait(t.Context()); err != nil {
			t.Errorf("error is %v", err)
		}
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
	})
}

// A close by force ends nested calls too, and every slot comes back.
func TestA4_NestedRunAndClose(t *testing.T) {
	for _, way := range waits {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				outer := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
					return 0, way.call(ctx, s, 2, func(ctx context.Context) error {
						<-ctx.Done()
						return context.Cause(ctx)
					})
				})
				synctest.Wait()
				s.Close()
				if _, err := outer.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
					t.Errorf("error is %v, want ErrClosed", err)
				}
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

// A nested call that is cancelled while it waits leaves the function with its
// slot.
func TestA4_CancelOfANestedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{})
		permit := mustTry(t, s)
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			short, cancel := context.WithTimeoutCause(ctx, time.Minute, errAsked)
			defer cancel()
			_, err := stint.Run(short, s.Weight(2), nothing)
			wantCounts(t, s, 2, 0)
			return 0, err
		})
		if !errors.Is(err, errAsked) {
			t.Errorf("error is %v, want the cause", err)
		}
		permit.Release()
		wantAllFree(t, s)
	})
}

func TestA4_PanicAndGoexitInANestedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			return stint.Run(ctx, s, func(context.Context) (int, error) { panic(errAsked) })
		})
		if !errors.Is(err, errAsked) {
			t.Errorf("error is %v, want the panic's", err)
		}
		_, err = stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			return stint.Run(ctx, s, func(context.Context) (int, error) { panic("goexit comes next") })
		}).Wait(t.Context())
		if _, ok := errors.AsType[*stint.PanicError](err); !ok {
			t.Errorf("error is %v, want a PanicError", err)
		}
		wantAllFree(t, s)
	})
}

// Another scheduler's slots are no concern of the first: a call there keeps
// the slot here.
func TestA4_TwoSchedulersDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			return stint.Run(ctx, other, func(ctx context.Context) (int, error) {
				if a, b := s.Stats().Running, other.Stats().Running; a != 1 || b != 1 {
					t.Errorf("%d and %d run, want 1 and 1", a, b)
				}
				return stint.Run(ctx, s, func(ctx context.Context) (int, error) {
					if a, b := s.Stats().Running, other.Stats().Running; a != 1 || b != 1 {
						t.Errorf("nested, %d and %d run, want 1 and 1", a, b)
					}
					return stint.Run(ctx, other, nothing)
				})
			})
		})
		if err != nil {
			t.Error(err)
		}
		wantAllFree(t, s)
		wantAllFree(t, other)
	})
}

// A goroutine that outlives its function has no slot left to suspend: its calls wait
// like those of any other goroutine.
func TestA4_GoroutineThatOutlivesItsFunction(t *testing.T) {
	for _, f := range nesting {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				begin, end, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
				var in gauge
				late := make(chan error, 1)
				answer := ask(t.Context(), f, s, func(ctx context.Context) error {
					ctx = context.WithoutCancel(ctx)
					go func() {
						<-begin
						_, err := stint.Run(ctx, s, valued(busy(t, s, &in)))
						late <- err
					}()
					<-end
					return nil
				})
				running := stint.Go(t.Context(), s, func(context.Context) (int, error) {
					in.enter()
					defer in.leave()
					<-finish
					return 0, nil
				})
				close(end)
				wantAnswer(t, answer, nil)
				close(begin)
				wantCounts(t, s, 1, 1)
				close(finish)
				if err := <-late; err != nil {
					t.Error(err)
				}
				if _, err := running.Wait(t.Context()); err != nil || in.most != 1 {
					t.Errorf("%d inside at once, error is %v", in.most, err)
				}
				wantAllFree(t, s)
			})
		})
	}
}

// A function may end while one of its goroutines still waits for work. The slot
// that it has suspended is that work's then, and comes back once.
func TestA4_FunctionThatEndsWhileItsGoroutineWaits(t *testing.T) {
	for _, f := range nesting {
		for _, way := range waits {
			t.Run(f.name+"/"+way.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(1, stint.Config{})
					finish, late := make(chan struct{}), make(chan error, 1)
					answer := ask(t.Context(), f, s, func(ctx context.Context) error {
						ctx = context.WithoutCancel(ctx)
						go func() {
							late <- way.call(ctx, s, 1, func(context.Context) error { <-finish; return nil })
						}()
						time.Sleep(time.Second)
						return nil
					})
					time.Sleep(time.Minute)
					wantAnswer(t, answer, nil)
					wantCounts(t, s, 1, 0)
					if _, ok := s.TryAcquire(t.Context()); ok {
						t.Error("the slot was released while the call runs on it")
					}
					close(finish)
					wantAnswer(t, late, nil)
					wantAllFree(t, s)
				})
			})
		}
	}
}
