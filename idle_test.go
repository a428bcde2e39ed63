package stint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// waitIdle calls WaitIdle in a goroutine and returns where its answer will be.
func waitIdle(ctx context.Context, s stint.Scheduler) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- s.WaitIdle(ctx) }()
	synctest.Wait()
	return answer
}

func wantNoAnswer(t *testing.T, answer <-chan error, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-answer:
		t.Fatalf("%s: WaitIdle returned %v", when, err)
	default:
	}
}

func TestB7_WaitIdleOfAnIdleScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errBoom)
		paused, closed := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
		paused.Pause("test")
		closed.Close()
		for range 50 { // of two things that are so, an unordered select picks one
			for _, s := range []stint.Scheduler{stint.New(1, stint.Config{}), stint.New(0, stint.Config{}), paused, closed} {
				if err := s.WaitIdle(ended); err != nil {
					t.Errorf("WaitIdle: %v, want nil", err)
				}
			}
		}
	})
}

// It waits for whatever is queued or runs, and the scheduler stays open.
func TestB7_WaitIdleWaitsForAll(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				for range 2 {
					gate := make(chan struct{})
					fn := func(context.Context) error {
						<-gate
						return nil
					}
					answers := []<-chan error{ask(t.Context(), f, s, fn), ask(t.Context(), f, s.Key("a"), fn)}
					idle := []<-chan error{waitIdle(t.Context(), s), waitIdle(t.Context(), s)}
					answers = append(answers, ask(t.Context(), f, s.At(stint.High), fn)) // later than the call
					for range answers {
						for _, answer := range idle {
							wantNoAnswer(t, answer, "while work runs or waits")
						}
						gate <- struct{}{}
					}
					for _, answer := range append(answers, idle...) {
						wantAnswer(t, answer, nil)
					}
				}
				atRest(t, s)
			})
		})
	}
}

func TestB7_WaitIdleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustAcquire(t, s)
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves, stays := waitIdle(ctx, s), waitIdle(t.Context(), s)
		cancel(errBoom)
		wantAnswer(t, leaves, errBoom)
		wantNoAnswer(t, stays, "when another call has left")
		permit.Release()
		wantAnswer(t, stays, nil)
		mustTry(t, s).Release() // it is open
		atRest(t, s)
	})
}

// Functions that have suspended their slot run all the same, in whichever goroutine.
func TestB7_WaitIdleWaitsForSuspendedSlots(t *testing.T) {
	for _, f := range nesting {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			p := stint.NewPromise[int]()
			answer := ask(t.Context(), f, s, func(ctx context.Context) error {
				_, err := p.Future().Wait(ctx)
				return err
			})
			idle := waitIdle(t.Context(), s)
			if n := s.Stats().Running; n != 0 {
				t.Fatalf("%d slots are in use, want that it is suspended", n)
			}
			wantNoAnswer(t, idle, f.name+" that has suspended its slot")
			p.Resolve(1)
			wantAnswer(t, answer, nil)
			wantAnswer(t, idle, nil)
		})
	}
}

// An outcome is published when its teardowns have been called.
func TestB7_WaitIdleWaitsForTeardowns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		torn := make(chan struct{})
		permit := mustAcquire(t, s)
		ran, cancelled := stint.Go(t.Context(), s, value(1)), stint.Go(t.Context(), s, never(t))
		for _, f := range []*stint.Future[int]{ran, cancelled} {
			f.Teardown(func() { <-torn })
		}
		go cancelled.Cancel(nil)
		permit.Release()
		idle := waitIdle(t.Context(), s)
		for range 2 {
			wantNoAnswer(t, idle, "while a teardown runs")
			torn <- struct{}{}
		}
		wantAnswer(t, idle, nil)
	})
}

func TestB7_WaitIdleWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		s.Pause("test")
		f := stint.Go(t.Context(), s, value(1))
		idle := waitIdle(t.Context(), s)
		wantNoAnswer(t, idle, "while a paused scheduler has something queued")
		s.Resume()
		wantAnswer(t, idle, nil)
		if !settled(f) {
			t.Error("what was queued has no outcome")
		}
	})
}

// What is taken out of the queue is queued no more.
func TestB7_WaitIdleAfterCancelAndClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		s.Pause("test")
		for _, empty := range []func(f *stint.Future[int]){
			func(f *stint.Future[int]) { f.Cancel(nil) }, func(*stint.Future[int]) { s.Clear() },
		} {
			f := stint.Go(t.Context(), s, never(t))
			idle := waitIdle(t.Context(), s)
			wantNoAnswer(t, idle, "with something queued")
			empty(f)
			wantAnswer(t, idle, nil)
		}
	})
}

// Drain and WaitIdle wait for the same, and each returns when that has ended.
func TestB7_WaitIdleBesideDrainAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			end  func(ctx context.Context, s stint.Scheduler) error
			want error
		}{
			{"Drain", func(_ context.Context, s stint.Scheduler) error { return s.Drain(t.Context()) }, nil},
			{"Drain that its context ends", func(ctx context.Context, s stint.Scheduler) error { return s.Drain(ctx) }, errBoom},
			{"Close", func(_ context.Context, s stint.Scheduler) error {
				s.Close()
				return nil
			}, nil},
		} {
			s := stint.New(1, stint.Config{})
			permit := mustAcquire(t, s)
			before := waitIdle(t.Context(), s)
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.end(ctx, s) }()
			after := waitIdle(t.Context(), s)
			cancel(errBoom)
			wantNoAnswer(t, before, c.name)
			wantNoAnswer(t, after, c.name)
			permit.Release()
			for answer, want := range map[<-chan error]error{before: nil, after: nil, ended: c.want} {
				synctest.Wait()
				if err := <-answer; !errors.Is(err, want) {
					t.Errorf("%s: the answer is %v, want %v", c.name, err, want)
				}
			}
		}
	})
}

// A chain of continuations on one scheduler is waited for to its end, however it goes on.
func TestB7_WaitIdleWaitsForContinuations(t *testing.T) {
	for range 200 {
		s := stint.New(2, stint.Config{})
		f := stint.Go(t.Context(), s, value(0))
		for i := range 20 {
			next := stint.Then(t.Context(), s, f, func(_ context.Context, n int) (int, error) {
				if i%5 == 4 {
					return 0, errBoom
				}
				return n + 1, nil
			})
			f = stint.Catch(t.Context(), s, next, instead(1))
		}
		if err := s.WaitIdle(t.Context()); err != nil || !settled(f) {
			t.Fatalf("WaitIdle: %v, and the last of a chain is settled: %t", err, settled(f))
		}
	}
}

// WaitIdle waits for the work of submitters that a bounded queue blocks.
func TestB7_WaitIdleWaitsForBlockedSubmitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Queue: 1})
		permit := mustAcquire(t, s)
		var ran atomic.Int32
		for range 4 {
			go stint.Go(t.Context(), s, func(context.Context) (int, error) { return int(ran.Add(1)), nil })
		}
		synctest.Wait()
		idle := waitIdle(t.Context(), s)
		permit.Release()
		wantAnswer(t, idle, nil)
		if n := ran.Load(); n != 4 {
			t.Errorf("WaitIdle returned when %d of 4 had run", n)
		}
	})
}

func TestB8_WaitIdleWithSharedSlots(t *testing.T) {
	for _, f := range forms {
		synctest.Test(t, func(t *testing.T) {
			a, b, fa, fb := sharing(2, stint.Config{}, slotstest.NewPool(1))
			permit := mustAcquire(t, b)
			answer := ask(t.Context(), f, a, func(context.Context) error { return nil })
			idle := waitIdle(t.Context(), a)
			wantNoAnswer(t, idle, fmt.Sprint(f.name, " while the slot is another's"))
			permit.Release()
			wantAnswer(t, answer, nil)
			wantAnswer(t, idle, nil)
			wantAtRest(t, a, fa)
			wantAtRest(t, b, fb)
		})
	}
}

// Batches of work, each waited for by several goroutines: all of a batch has ended when WaitIdle
// returns, and no call is left behind.
func TestB7_WaitIdleStress(t *testing.T) {
	s := stint.New(3, stint.Config{PerKey: 2})
	var ended atomic.Int32
	for batch := range int32(300) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				f := forms[i%len(forms)]
				if f.name == "Go" {
					stint.Go(t.Context(), s.Key("a"), func(context.Context) (int, error) { return int(ended.Add(1)), nil })
					return
				}
				_ = f.do(t.Context(), s, func(context.Context) error {
					ended.Add(1)
					return nil
				})
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_ = s.WaitIdle(ctx)
		wg.Wait()
		var idle sync.WaitGroup
		for range 3 {
			idle.Go(func() {
				if err := s.WaitIdle(t.Context()); err != nil || ended.Load() != 4*(batch+1) {
					t.Errorf("WaitIdle: %v when %d of %d had ended", err, ended.Load(), 4*(batch+1))
				}
			})
		}
		idle.Wait()
	}
}
