package stint_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// ask calls a form in a goroutine and returns where its answer will be.
func ask(ctx context.Context, f form, s stint.Scheduler, fn func(context.Context) error) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- f.do(ctx, s, fn) }()
	synctest.Wait()
	return answer
}

// wantAnswer checks that an answer is there, and what it is.
func wantAnswer(t *testing.T, answer <-chan error, want error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-answer:
		if !errors.Is(err, want) {
			t.Errorf("the answer is %v, want %v", err, want)
		}
	default:
		t.Fatalf("there is no answer, want %v", want)
	}
}

// uncalled is a function that must not be called.
func uncalled(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		t.Error("the function was called")
		return nil
	}
}

func TestA6_CancelQueuedAnswersTheCause(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustTry(t, s)
				ctx, cancel := context.WithCancelCause(t.Context())
				before := ask(t.Context(), f, s, func(context.Context) error { return nil })
				answer := ask(ctx, f, s, uncalled(t))
				after := ask(t.Context(), f, s, func(context.Context) error { return nil })
				wantCounts(t, s, 1, 3)
				cancel(errAsked)
				wantAnswer(t, answer, errAsked)
				wantCounts(t, s, 1, 2)
				permit.Release()
				wantAnswer(t, before, nil)
				wantAnswer(t, after, nil)
				wantAllFree(t, s)
			})
		})
	}
}

func TestA6_EndedContextIsRefused(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(errAsked)
				wantAnswer(t, ask(ctx, f, s, uncalled(t)), errAsked) // though a slot is free
				permit := mustTry(t, s)
				wantAnswer(t, ask(ctx, f, s, uncalled(t)), errAsked)
				wantCounts(t, s, 1, 0)
				permit.Release()
				wantAllFree(t, s)
			})
		})
	}
}

func TestA6_DeadlineOfQueued(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustTry(t, s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				if err := f.do(ctx, s, uncalled(t)); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error is %v, want DeadlineExceeded", err)
				}
				if waited := time.Since(began); waited != time.Minute {
					t.Errorf("waited %v, want a minute", waited)
				}
				permit.Release()
				wantAllFree(t, s)
			})
		})
	}
}

// A slot that comes free after the context of a call has ended is not for that call, even
// if its goroutine has not run in between.
func TestA6_WhatEndsFirstWins(t *testing.T) {
	acquire := func(ctx context.Context, s stint.Scheduler) error {
		_, err := s.Acquire(ctx)
		return err
	}
	run := func(ctx context.Context, s stint.Scheduler) error {
		_, err := stint.Run(ctx, s, func(context.Context) (int, error) {
			t.Error("the function is called")
			return 0, nil
		})
		return err
	}
	for name, call := range map[string]func(context.Context, stint.Scheduler) error{"Acquire": acquire, "Run": run} {
		for _, of := range []func(stint.Scheduler) stint.Scheduler{
			func(s stint.Scheduler) stint.Scheduler { return s },
			func(s stint.Scheduler) stint.Scheduler { return s.Key("a") },
			func(s stint.Scheduler) stint.Scheduler { return s.Weight(2) },
			func(s stint.Scheduler) stint.Scheduler { return s.At(stint.Highest) },
		} {
			for waiters := range 25 { // what a select chooses is random
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(2, stint.Config{})
					permits := takeSlots(t, s, 2)
					ctx, cancel := context.WithCancelCause(t.Context())
					results := make(chan error, 3)
					n := 1 + waiters%3 // the second with the same context is watched
					for range n {
						go func() { results <- call(ctx, of(s)) }()
					}
					synctest.Wait()
					cancel(errBoom)
					permits.release()
					for range n {
						if err := <-results; err != errBoom { //nolint:errorlint // the very error
							t.Errorf("%s: error %v, want the cause of the context", name, err)
						}
					}
					atRest(t, s)
				})
			}
		}
	}
}

func TestA6_CancelRunningEndsItsContext(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				ctx, cancel := context.WithCancelCause(t.Context())
				answer := ask(ctx, f, s, func(ctx context.Context) error {
					<-ctx.Done()
					return context.Cause(ctx)
				})
				wantCounts(t, s, 1, 0)
				cancel(errAsked)
				wantAnswer(t, answer, errAsked)
				wantAllFree(t, s)
			})
		})
	}
}

// One entry that leaves may be all that held others back.
func TestA6_CancelLetsThoseBehindStart(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(3, stint.Config{})
				permit := mustTry(t, s)
				ctx, cancel := context.WithCancelCause(t.Context())
				heavy := ask(ctx, f, s.Weight(3), uncalled(t))
				light := claimSlot(t.Context(), s)
				if !light.waits() {
					t.Fatal("the heavy head was passed over")
				}
				cancel(errAsked)
				wantAnswer(t, heavy, errAsked)
				if !light.holds() {
					t.Fatal("the light waiter did not start after the heavy one left")
				}
				permit.Release()
				light.permit.Release()
				wantAllFree(t, s)
			})
		})
	}
}

// Entries leave from anywhere, in any order, and the others keep theirs.
func TestA6_CancelAnywhereInALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var started []int
		futures := make([]*stint.Future[int], n)
		for i := range futures {
			futures[i] = stint.Go(t.Context(), s, func(context.Context) (int, error) {
				started = append(started, i)
				return i, nil
			})
		}
		for i := range n {
			if at := i * 1009 % n; at%3 != 0 {
				futures[at].Cancel(errAsked)
			}
		}
		wantCounts(t, s, 1, n/3)
		releaseSlot(permit)
		for i, f := range futures {
			_, err := f.Wait(t.Context())
			if want := i%3 != 0; errors.Is(err, errAsked) != want {
				t.Fatalf("function %d: %v", i, err)
			}
		}
		for at, i := range started {
			if i != 3*at {
				t.Fatalf("start %d was of function %d, want %d", at, i, 3*at)
			}
		}
		wantAllFree(t, s)
	})
}

// All entries of one context leave together, in whatever form and tier.
func TestA6_OneContextOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{PerKey: 1})
		permit := mustTry(t, s.Key("a"))
		ctx, cancel := context.WithCancelCause(t.Context())
		other, release := context.WithCancel(t.Context())
		defer release()
		var answers []<-chan error
		var staying []<-chan error
		for i := range 4 * len(forms) {
			f, view := forms[i%len(forms)], s.At(stint.Priority(i%7)-3).Key([]string{"", "a", "b"}[i%3])
			answers = append(answers, ask(ctx, f, view, uncalled(t)))
			staying = append(staying, ask(other, f, view, func(context.Context) error { return nil }))
		}
		cancel(errAsked)
		for _, answer := range answers {
			wantAnswer(t, answer, errAsked)
		}
		permit.Release()
		for _, answer := range staying {
			wantAnswer(t, answer, nil)
		}
		wantAllFree(t, s)
	})
}

func TestA6_ClearAnswersEachEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{PerKey: 1})
		permit := mustTry(t, s.Key("a"))
		var answers []<-chan error
		for i := range 3 * len(forms) {
			view := s.At(stint.Priority(i%7) - 3).Key([]string{"", "a", "b"}[i%3])
			answers = append(answers, ask(t.Context(), forms[i%len(forms)], view, uncalled(t)))
		}
		if got := s.Clear(); got != len(answers) {
			t.Errorf("Clear() = %d, want %d", got, len(answers))
		}
		for _, answer := range answers {
			wantAnswer(t, answer, stint.ErrCleared)
		}
		if got := s.Clear(); got != 0 {
			t.Errorf("a second Clear() = %d", got)
		}
		permit.Release()
		wantAllFree(t, s)
	})
}

func TestB7_CloseAnswersQueuedAndLater(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustTry(t, s)
				queued := ask(t.Context(), f, s, uncalled(t))
				s.Close()
				wantAnswer(t, queued, stint.ErrClosed)
				wantAnswer(t, ask(t.Context(), f, s, uncalled(t)), stint.ErrClosed)
				permit.Release()
				wantAnswer(t, ask(t.Context(), f, s, uncalled(t)), stint.ErrClosed)
				if _, ok := s.TryAcquire(t.Context()); ok {
					t.Error("TryAcquire took a slot of a closed scheduler")
				}
				s.Close()
				if err := s.Drain(t.Context()); err != nil {
					t.Errorf("Drain after Close: %v", err)
				}
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

// The contexts of running functions end with the cause, also those of a group
// of which nothing is queued.
func TestB7_CloseEndsTheContextsOfRunningFunctions(t *testing.T) {
	for _, way := range []struct {
		name  string
		watch func(ctx context.Context)
	}{
		{"Done", func(ctx context.Context) { <-ctx.Done() }},
		{"Err", func(ctx context.Context) {
			for ctx.Err() == nil {
				time.Sleep(time.Second)
			}
		}},
		{"a derived context", func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			<-ctx.Done()
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			for _, f := range nesting {
				t.Run(f.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := stint.New(1, stint.Config{})
						var cause error
						answer := ask(t.Context(), f, s, func(ctx context.Context) error {
							way.watch(ctx)
							cause = context.Cause(ctx)
							return nil
						})
						s.Close()
						time.Sleep(time.Minute)
						synctest.Wait()
						if !errors.Is(cause, stint.ErrClosed) {
							t.Errorf("the context ended with cause %v, want ErrClosed", cause)
						}
						if len(answer) == 0 {
							t.Error("the function was not waited for")
						}
						wantCounts(t, s, 0, 0)
					})
				})
			}
		})
	}
}

func TestB7_DrainFinishesWhatWasAccepted(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				finished := 0
				var accepted []<-chan error
				for range 3 {
					accepted = append(accepted, ask(t.Context(), f, s, func(context.Context) error {
						time.Sleep(time.Minute)
						finished++
						return nil
					}))
				}
				drained := make(chan error, 1)
				began := time.Now()
				go func() { drained <- s.Drain(t.Context()) }()
				synctest.Wait()
				wantAnswer(t, ask(t.Context(), f, s, uncalled(t)), stint.ErrClosed)
				if err := <-drained; err != nil {
					t.Errorf("Drain: %v", err)
				}
				if took := time.Since(began); finished != 3 || took != 3*time.Minute {
					t.Errorf("Drain returned after %v with %d of 3 finished", took, finished)
				}
				for _, answer := range accepted {
					wantAnswer(t, answer, nil)
				}
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

func TestB7_DrainClosesByForceAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		running := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		queued := stint.Go(t.Context(), s, nothing)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errAsked)
		defer cancel()
		began := time.Now()
		if err := s.Drain(ctx); !errors.Is(err, errAsked) {
			t.Errorf("Drain: %v, want the cause of its context", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Drain took %v, want a minute", took)
		}
		for _, f := range []*stint.Future[int]{running, queued} {
			if _, err := f.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
				t.Errorf("error is %v, want ErrClosed", err)
			}
		}
		wantCounts(t, s, 0, 0)
	})
}

func TestB7_DrainOfAnIdleScheduler(t *testing.T) {
	s := stint.New(1, stint.Config{})
	for range 2 {
		if err := s.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
	}
	if _, err := s.Acquire(t.Context()); !errors.Is(err, stint.ErrClosed) {
		t.Errorf("Acquire after Drain: %v, want ErrClosed", err)
	}
}

// Several may wait for the same drain.
func TestB7_DrainTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var drains sync.WaitGroup
		for range 2 {
			drains.Go(func() {
				if err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		permit.Release()
		drains.Wait()
	})
}

// Limits may still change while a scheduler drains, and what was accepted runs
// all the same.
func TestB7_LimitsChangeDuringADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		f := stint.Go(t.Context(), s, nothing)
		heavy := stint.Go(t.Context(), s.Weight(1), nothing)
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		synctest.Wait()
		s.Resize(2)
		s.SetCaps(stint.Caps{Low: 1})
		s.SetPerKey(1)
		for _, f := range []*stint.Future[int]{f, heavy} {
			if _, err := f.Wait(t.Context()); err != nil {
				t.Errorf("error is %v", err)
			}
		}
		permit.Release()
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
	})
}

// A function is not over while it waits for another: Drain waits for both,
// also at the moment when the one is over and the other has not gone on yet.
func TestB7_DrainWaitsForFunctionsThatWait(t *testing.T) {
	for _, f := range nesting {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				var over atomic.Bool
				answer := ask(t.Context(), f, s, func(ctx context.Context) error {
					_, err := stint.Go(ctx, s, func(context.Context) (int, error) {
						time.Sleep(time.Minute)
						return 0, nil
					}).Wait(ctx)
					time.Sleep(time.Minute)
					over.Store(true)
					return err
				})
				if err := s.Drain(t.Context()); err != nil || !over.Load() {
					t.Errorf("Drain: %v, function over: %t", err, over.Load())
				}
				wantAnswer(t, answer, nil)
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

func TestB7_DrainStartsNothingThroughAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		s.Pause("the test")
		f := stint.Go(t.Context(), s, nothing)
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		wantCounts(t, s, 0, 1)
		s.Resume()
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		if _, err := f.Wait(t.Context()); err != nil {
			t.Errorf("error is %v", err)
		}
	})
}

// What a running function submits is accepted during a Drain, also if it waits for room in the
// queue when the Drain begins. Others that wait for room are refused.
func TestB7_DrainAcceptsBlockedWorkOfRunningFunctions(t *testing.T) {
	nested := func(context.Context, int) (int, error) { return 1, nil }
	for name, submit := range map[string]func(context.Context, stint.Scheduler) error{
		"Go": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Go(ctx, s, func(ctx context.Context) (int, error) { return nested(ctx, 0) }).Wait(ctx)
			return err
		},
		"Group": func(ctx context.Context, s stint.Scheduler) error {
			g := stint.NewGroup(ctx, s)
			g.Go(func(context.Context) error { return nil })
			return g.Wait()
		},
		"Map": func(ctx context.Context, s stint.Scheduler) (err error) {
			for _, e := range stint.Map(ctx, s, slices.Values([]int{1}), nested) {
				err = errors.Join(err, e)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(2, stint.Config{Queue: 1})
				f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
					time.Sleep(2 * time.Second)
					return 0, submit(ctx, s)
				})
				sleep := func(context.Context) (int, error) { time.Sleep(10 * time.Second); return 0, nil }
				stint.Go(t.Context(), s, sleep)
				stint.Go(t.Context(), s, sleep) // the queue is full
				time.Sleep(time.Second)
				others := make(chan error, 2)
				for range cap(others) { // the first gets the room of what starts on the slot of the function that waits
					go func() { _, err := stint.Go(t.Context(), s, sleep).Wait(t.Context()); others <- err }()
				}
				time.Sleep(2 * time.Second)
				if n := s.Stats().Blocked; n != 2 {
					t.Fatalf("%d wait for room, want the function and another", n)
				}
				drained := make(chan error, 1)
				go func() { drained <- s.Drain(t.Context()) }()
				if _, err := f.Wait(t.Context()); err != nil {
					t.Errorf("the work of the running function: %v", err)
				}
				if err := errors.Join(<-others, <-others); !errors.Is(err, stint.ErrClosed) {
					t.Errorf("other work that waits for room: %v, want %v", err, stint.ErrClosed)
				}
				if err := <-drained; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
