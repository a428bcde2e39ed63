package stint_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// one is a function with a value.
func one(context.Context) (int, error) { return 1, nil }

// several returns n schedulers of a limit.
func several(n, limit int) (all []stint.Scheduler) {
	for range n {
		all = append(all, stint.New(limit, stint.Config{}))
	}
	return all
}

// within calls fn in a Run on each scheduler, one inside the other.
func within(ctx context.Context, all []stint.Scheduler, fn func(context.Context) error) error {
	if len(all) == 0 {
		return fn(ctx)
	}
	_, err := stint.Run(ctx, all[0], func(ctx context.Context) (int, error) {
		return 0, within(ctx, all[1:], fn)
	})
	return err
}

// wantRunning checks how many slots of each scheduler are in use.
func wantRunning(t *testing.T, when string, all []stint.Scheduler, want ...int) {
	t.Helper()
	var got []int
	for _, s := range all {
		got = append(got, s.Stats().Running)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v slots are in use, want %v", when, got, want)
	}
}

func wantNothingLeft(t *testing.T, all []stint.Scheduler) {
	t.Helper()
	for _, s := range all {
		wantAllFree(t, s)
	}
}

// A function may wait for what another scheduler makes of work on its own: it suspends the slot
// that this work needs, though it waits for something else.
func TestA4_WaitForAContinuationOnAnotherScheduler(t *testing.T) {
	for _, f := range nesting {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both := several(2, 1)
				a, b := both[0], both[1]
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := f.do(ctx, a, func(ctx context.Context) error {
					first := stint.Go(ctx, a, one)
					next := stint.Then(ctx, b, first, func(_ context.Context, n int) (int, error) { return n + 1, nil })
					last := stint.Then(ctx, a, next, func(_ context.Context, n int) (int, error) { return n + 1, nil })
					if n, err := next.Wait(ctx); n != 2 || err != nil {
						t.Errorf("the continuation is %d, %v", n, err)
					}
					wantRunning(t, "after the first Wait", both, 1, 0)
					if n, err := last.Wait(ctx); n != 3 || err != nil {
						t.Errorf("the last is %d, %v", n, err)
					}
					wantRunning(t, "after both", both, 1, 0)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				wantNothingLeft(t, both)
			})
		})
	}
}

// What is called on one scheduler within another waits for work on either, in every form. It has
// all slots again when it goes on, and its caller has its own when the call has ended.
func TestA4_NestedAcrossSchedulersNeverDeadlocks(t *testing.T) {
	for _, depth := range []int{2, 3} {
		for _, limit := range []int{1, 2} {
			for _, way := range waits {
				t.Run(fmt.Sprintf("%d/%d/%s", depth, limit, way.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						all := several(depth, limit)
						gauges := make([]gauge, depth)
						ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
						defer cancel()
						var wg sync.WaitGroup
						for range 3 {
							wg.Go(func() {
								err := within(ctx, all, func(ctx context.Context) error {
									for i, s := range all {
										if err := way.call(ctx, s, 2, busy(t, s, &gauges[i])); err != nil {
											return err
										}
									}
									return nil
								})
								if err != nil {
									t.Error(err)
								}
							})
						}
						wg.Wait()
						for i := range gauges {
							if gauges[i].most > limit {
								t.Errorf("%d were inside of scheduler %d", gauges[i].most, i)
							}
						}
						wantNothingLeft(t, all)
					})
				})
			}
		}
	}
}

// While a nested function waits, none of its slots is held, nor of its callers'; then all are.
func TestA4_AllSlotsAreSuspendedAndResumed(t *testing.T) {
	for i := range 3 {
		for _, way := range waits {
			t.Run(fmt.Sprintf("%s/%d", way.name, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := several(3, 1)
					_, err := stint.Run(t.Context(), all[0], func(ctx context.Context) (int, error) {
						err := within(ctx, all[1:], func(ctx context.Context) error {
							wantRunning(t, "before", all, 1, 1, 1)
							err := way.call(ctx, all[i], 1, func(context.Context) error {
								time.Sleep(time.Second) // all slots are suspended by then
								want := []int{0, 0, 0}
								want[i] = 1
								switch way.name {
								case "Run", "RunWith":
									want = []int{1, 1, 1} // a call on the slots of its caller
								case "Map", "MapUnordered":
									return nil // a range wakes now and then, and takes back what it can before it waits again
								}
								wantRunning(t, "meanwhile", all, want...)
								return nil
							})
							wantRunning(t, "after", all, 1, 1, 1)
							return err
						})
						wantRunning(t, "back in the caller", all, 1, 0, 0)
						return 0, err
					})
					if err != nil {
						t.Error(err)
					}
					wantNothingLeft(t, all)
				})
			})
		}
	}
}

// The slots are taken back in the order of the calls: that of the outer scheduler first, and no
// later one before.
func TestA4_SlotsAreTakenBackInTheOrderOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := several(3, 1)
		other := stint.New(1, stint.Config{})
		finish, end := make(chan struct{}), make(chan struct{})
		answer := make(chan error, 1)
		on := false
		go func() {
			answer <- within(t.Context(), all, func(ctx context.Context) error {
				f := stint.Go(ctx, other, func(context.Context) (int, error) { <-finish; return 0, nil })
				_, err := f.Wait(ctx)
				on = true
				<-end
				return err
			})
		}()
		synctest.Wait()
		wantRunning(t, "while it waits", all, 0, 0, 0)
		var taken permits
		for _, s := range all {
			taken = append(taken, mustTry(t, s))
		}
		close(finish)
		synctest.Wait()
		for _, i := range []int{2, 1} { // of no use before the first
			taken[i].Release()
			synctest.Wait()
			if all[i].Stats().Running != 0 || on {
				t.Fatalf("slot %d was taken back before that of the outer call", i)
			}
			taken[i] = mustTry(t, all[i])
		}
		for i, s := range all {
			if on {
				t.Errorf("the function goes on without slot %d", i)
			}
			taken[i].Release()
			synctest.Wait()
			if _, free := s.TryAcquire(t.Context()); s.Stats().Running != 1 || free {
				t.Errorf("slot %d was not taken back in its turn", i)
			}
		}
		if !on {
			t.Error("the function has all its slots and does not go on")
		}
		close(end)
		wantAnswer(t, answer, nil)
		wantNothingLeft(t, append(all, other))
	})
}

// A wait that is cancelled leaves the function with all its slots, which it waits for if others
// have them.
func TestA4_CancelWhileSlotsOfTwoSchedulersAreSuspended(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both := several(2, 1)
				never := make(chan struct{})
				answer := make(chan error, 1)
				short, cancel := context.WithCancelCause(t.Context())
				var f *stint.Future[int]
				go func() {
					answer <- within(t.Context(), both, func(ctx context.Context) error {
						s := stint.New(1, stint.Config{})
						f = stint.Go(context.WithoutCancel(ctx), s, func(context.Context) (int, error) { <-never; return 0, nil })
						within, stop := context.WithCancelCause(ctx)
						defer context.AfterFunc(short, func() { stop(context.Cause(short)) })()
						_, err := f.Wait(within)
						wantRunning(t, "after the wait", both, 1, 1)
						return err
					})
				}()
				synctest.Wait()
				wantRunning(t, "during the wait", both, 0, 0)
				var others permits
				if taken {
					for _, s := range both {
						others = append(others, mustTry(t, s))
					}
				}
				cancel(errAsked)
				synctest.Wait()
				for _, permit := range others {
					if len(answer) > 0 {
						t.Error("the function went on without its slots")
					}
					releaseSlot(permit)
				}
				wantAnswer(t, answer, errAsked)
				close(never)
				if _, err := f.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				wantNothingLeft(t, both)
			})
		})
	}
}

// A nested call that is cancelled in the queue of the other scheduler, or of its caller's, leaves
// the caller with its slot.
func TestA4_CancelOfACallOnAnotherScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := several(2, 2)
		a, b := both[0], both[1]
		ofA, ofB := mustTry(t, a), mustTry(t, b)
		_, err := stint.Run(t.Context(), a, func(ctx context.Context) (int, error) {
			for _, s := range []stint.Scheduler{b.Weight(2), a.Weight(2)} {
				short, cancel := context.WithTimeoutCause(ctx, time.Minute, errAsked)
				if _, err := stint.Run(short, s, nothing); !errors.Is(err, errAsked) {
					t.Errorf("error is %v, want the cause", err)
				}
				cancel()
				wantRunning(t, "after the call", both, 2, 1)
			}
			_, err := stint.Run(ctx, b, func(ctx context.Context) (int, error) {
				short, cancel := context.WithTimeoutCause(ctx, time.Minute, errAsked)
				defer cancel()
				_, err := stint.Run(short, a.Weight(2), nothing)
				wantRunning(t, "after the inner call", both, 2, 2)
				return 0, err
			})
			if !errors.Is(err, errAsked) {
				t.Errorf("error is %v, want the cause", err)
			}
			wantRunning(t, "in the caller", both, 2, 1)
			return 0, nil
		})
		if err != nil {
			t.Error(err)
		}
		ofA.Release()
		ofB.Release()
		wantNothingLeft(t, both)
	})
}

// Several goroutines of the inner function wait at once. It has its slots again when the last
// goes on.
func TestA4_GoroutinesOfAFunctionOnTwoSchedulers(t *testing.T) {
	for _, way := range waits {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both := several(2, 1)
				gauges := make([]gauge, 2)
				err := within(t.Context(), both, func(ctx context.Context) error {
					var wg sync.WaitGroup
					for i := range 4 {
						wg.Go(func() {
							if err := way.call(ctx, both[i%2], 2, busy(t, both[i%2], &gauges[i%2])); err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					wantRunning(t, "after all have come back", both, 1, 1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				wantNothingLeft(t, both)
			})
		})
	}
}

// A goroutine still waits for work when the functions that it is of have ended. Each slot comes
// back once.
func TestA4_FunctionsOnTwoSchedulersEndWhileAGoroutineWaits(t *testing.T) {
	for i := range 2 {
		for _, way := range waits {
			t.Run(fmt.Sprintf("%s/%d", way.name, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					both := several(2, 1)
					finish, late := make(chan struct{}), make(chan error, 1)
					err := within(t.Context(), both, func(ctx context.Context) error {
						ctx = context.WithoutCancel(ctx)
						go func() {
							late <- way.call(ctx, both[i], 1, func(context.Context) error { <-finish; return nil })
						}()
						time.Sleep(time.Second)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					time.Sleep(time.Minute)
					want := []int{0, 0}
					want[i] = 1
					wantRunning(t, "after both have ended", both, want...)
					close(finish)
					wantAnswer(t, late, nil)
					wantNothingLeft(t, both)
				})
			})
		}
	}
}

// A panic and an end of the goroutine go through calls on two schedulers and leave no slot taken.
func TestA4_PanicAndGoexitOnTwoSchedulers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := several(2, 1)
		var in gauge
		for name, last := range map[string]func() error{
			"panic":  func() error { panic(errAsked) },
			"Goexit": func() error { runtime.Goexit(); return nil },
		} {
			f := stint.Go(t.Context(), both[0], func(ctx context.Context) (int, error) {
				return 0, within(ctx, both[1:], func(ctx context.Context) error {
					if err := waits[2].call(ctx, both[0], 1, busy(t, both[0], &in)); err != nil {
						return err
					}
					return last()
				})
			})
			if _, err := f.Wait(t.Context()); err == nil {
				t.Errorf("%s: there is no error", name)
			}
			wantNothingLeft(t, both)
		}
	})
}
