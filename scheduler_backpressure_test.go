package stint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// full returns a scheduler of one slot, which is taken, whose queue of n
// entries is full with jobs. Release of the permit sets everything going.
func full(t *testing.T, n int, when stint.WhenFull) (stint.Scheduler, *stint.Permit) {
	t.Helper()
	s := stint.New(1, stint.Config{Queue: n, WhenFull: when})
	permit := mustTry(t, s)
	for range n {
		stint.Go(t.Context(), s, nothing)
	}
	wantCounts(t, s, 1, n)
	return s, permit
}

func nothing(context.Context) (int, error) { return 0, nil }

// submitter is a goroutine that called Go, and the future it got.
type submitter struct{ f *stint.Future[int] }

func submit(ctx context.Context, s stint.Scheduler, fn func(context.Context) (int, error)) *submitter {
	sub := new(submitter)
	go func() { sub.f = stint.Go(ctx, s, fn) }()
	synctest.Wait()
	return sub
}

func (sub *submitter) blocked() bool { return sub.f == nil }

// answer is the error of the submitter's future, which must have an outcome.
func (sub *submitter) answer(t *testing.T) error {
	t.Helper()
	synctest.Wait()
	if sub.blocked() {
		t.Fatal("the submitter is still blocked")
	}
	select {
	case <-sub.f.Done():
	default:
		t.Fatal("the submitted function has no outcome")
	}
	_, err := sub.f.Wait(t.Context())
	return err
}

func TestA8_RefuseAnswersWhenFull(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, permit := full(t, 2, stint.Refuse)
				if err := f.do(t.Context(), s, nil); !errors.Is(err, stint.ErrQueueFull) {
					t.Errorf("error is %v, want ErrQueueFull", err)
				}
				wantCounts(t, s, 1, 2)
				s.Clear()
				permit.Release()
				if err := f.do(t.Context(), s, func(context.Context) error { return nil }); err != nil {
					t.Errorf("with room again: %v", err)
				}
				wantAllFree(t, s)
			})
		})
	}
}

// Work that can start needs no place in the queue, so an idle scheduler accepts as many
// functions at once as it has slots and places.
func TestA8_RefuseCountsOnlyWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(5, stint.Config{Queue: 2, WhenFull: stint.Refuse})
		finish := make(chan struct{})
		var futures []*stint.Future[int]
		for range 8 {
			futures = append(futures, stint.Go(t.Context(), s, func(context.Context) (int, error) {
				<-finish
				return 0, nil
			}))
		}
		wantCounts(t, s, 5, 2)
		close(finish)
		for i, f := range futures {
			_, err := f.Wait(t.Context())
			if want := i == 7; errors.Is(err, stint.ErrQueueFull) != want {
				t.Errorf("function %d: %v", i, err)
			}
		}
		wantAllFree(t, s)
	})
}

// A queue that is full of a tier at its cap does not hold back a higher one
// for which a slot is free.
func TestA8_FullQueueDoesNotHoldBackWhatCanStart(t *testing.T) {
	for _, when := range []stint.WhenFull{stint.Block, stint.Refuse} {
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1}, Queue: 1, WhenFull: when})
					permit := mustTry(t, s)
					low := stint.Go(t.Context(), s.At(stint.Low), nothing)
					wantCounts(t, s, 1, 1)
					if err := f.do(t.Context(), s, func(context.Context) error { return nil }); err != nil {
						t.Errorf("error is %v", err)
					}
					permit.Release()
					_, _ = low.Wait(t.Context())
					wantAllFree(t, s)
				})
			})
		}
	}
}

func TestA8_BlockWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 2, stint.Block)
		sub := submit(t.Context(), s, nothing)
		if !sub.blocked() || s.Stats().Blocked != 1 {
			t.Fatal("Go did not wait for room")
		}
		permit.Release()
		if err := sub.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		wantAllFree(t, s)
	})
}

// Calls that wait in any case are queued at once, where the order is decided.
func TestA8_WaitersTakeTheirPlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Block)
		first := claimSlot(t.Context(), s.At(stint.High))
		wantCounts(t, s, 1, 2)
		releaseSlot(permit)
		if !first.holds() {
			t.Error("a waiter of a high tier was held up by a full queue")
		}
		first.permit.Release()
		wantAllFree(t, s)
	})
}

// Submitters are admitted in the order in which the queue would serve their jobs.
func TestA8_BlockedSubmittersKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Block)
		var started journal
		var wg sync.WaitGroup
		for i, tier := range []stint.Priority{stint.Low, stint.Normal, stint.Low, stint.High, stint.Normal, stint.Highest} {
			wg.Go(func() {
				stint.Go(t.Context(), s.At(tier), func(context.Context) (int, error) {
					started.add("%v %d", tier, i)
					return 0, nil
				})
			})
			synctest.Wait()
		}
		releaseSlot(permit)
		wg.Wait()
		wantAllFree(t, s)
		started.want(t, "highest 5", "high 3", "normal 1", "normal 4", "low 0", "low 2")
	})
}

func TestA8_CancelOfABlockedSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Block)
		ctx, cancel := context.WithCancelCause(t.Context())
		leaving, staying := submit(ctx, s, nothing), submit(t.Context(), s, nothing)
		cancel(errAsked)
		if err := leaving.answer(t); !errors.Is(err, errAsked) {
			t.Errorf("error is %v, want the cause", err)
		}
		if got := s.Stats().Blocked; got != 1 || !staying.blocked() {
			t.Errorf("%d are blocked, want 1", got)
		}
		permit.Release()
		if err := staying.answer(t); err != nil {
			t.Errorf("error of the other is %v", err)
		}
		wantAllFree(t, s)
	})
}

// A job that was admitted is still subject to its context, though other submitters came
// and went while it was blocked.
func TestA8_CancelAfterBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Block)
		ctx, cancel := context.WithCancelCause(t.Context())
		sub := submit(ctx, s, nothing)
		other, leave := context.WithCancel(t.Context())
		submit(other, s, nothing)
		leave()
		synctest.Wait()
		s.Clear()
		synctest.Wait()
		if sub.blocked() {
			t.Fatal("Clear made no room")
		}
		wantCounts(t, s, 1, 1)
		cancel(errAsked)
		if err := sub.answer(t); !errors.Is(err, errAsked) {
			t.Errorf("error is %v, want the cause", err)
		}
		permit.Release()
		wantAllFree(t, s)
	})
}

// Whatever makes the scheduler refuse all that waits also answers the blocked submitters,
// all of them, and at once.
func TestA8_EndAnswersBlockedSubmitters(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(s stint.Scheduler)
		answer error
	}{
		{"Close", stint.Scheduler.Close, stint.ErrClosed},
		{"Drain", func(s stint.Scheduler) { go func() { _ = s.Drain(context.Background()) }() }, stint.ErrClosed},
		{"Resize(0)", func(s stint.Scheduler) { s.Resize(0) }, stint.ErrNoCapacity},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, permit := full(t, 1, stint.Block)
				var subs []*submitter
				for i := range 5 {
					subs = append(subs, submit(t.Context(), s.Key(fmt.Sprint(i%2)), nothing))
				}
				c.end(s)
				for i, sub := range subs {
					if err := sub.answer(t); !errors.Is(err, c.answer) {
						t.Errorf("submitter %d: error is %v, want %v", i, err, c.answer)
					}
				}
				releaseSlot(permit)
				wantCounts(t, s, 0, 0)
			})
		})
	}
}

// A submitter that is admitted and then refused leaves the room to the next.
func TestA8_RefusalAfterBackpressureLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{Queue: 1})
		permits := takeSlots(t, s, 3)
		queued := stint.Go(t.Context(), s, nothing)
		heavy := submit(t.Context(), s.At(stint.High).Weight(3), nothing)
		light := submit(t.Context(), s, nothing)
		s.Resize(2)
		queued.Cancel(errAsked)
		if err := heavy.answer(t); !errors.Is(err, stint.ErrTooHeavy) {
			t.Errorf("error is %v, want ErrTooHeavy", err)
		}
		if light.blocked() {
			t.Error("the next submitter was not admitted")
		}
		permits.release()
		if err := light.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		wantAllFree(t, s)
	})
}

// A function that submits to a full queue suspends its slot. Otherwise nothing could make
// room.
func TestA8_BlockedFunctionSuspendsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Queue: 1})
		ran := 0
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			g := stint.NewGroup(ctx, s)
			for range 10 {
				g.Go(func(context.Context) error { ran++; return nil })
			}
			return 0, g.Wait()
		})
		if err != nil || ran != 10 {
			t.Errorf("%d ran, error is %v", ran, err)
		}
		wantAllFree(t, s)
	})
}

// A continuation is part of accepted work and is not blocked by a full queue.
func TestA8_ContinuationNeedsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Refuse)
		done := stint.New(1, stint.Config{})
		then := stint.Then(t.Context(), s, stint.Go(t.Context(), done, nothing), func(_ context.Context, n int) (int, error) {
			return n + 1, nil
		})
		wantCounts(t, s, 1, 2)
		permit.Release()
		if n, err := then.Wait(t.Context()); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		wantAllFree(t, s)
	})
}
