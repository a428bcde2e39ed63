package stint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// The fake is held to the contract that the real ones are held to, fast and
// slow.
func TestSlots_Contract(t *testing.T) {
	for _, slow := range []bool{false, true} {
		t.Run(fmt.Sprintf("slow=%t", slow), func(t *testing.T) {
			slotstest.Run(t, func(t *testing.T, limit, n int) []stint.Slots {
				t.Helper()
				pool := slotstest.NewPool(limit)
				var all []stint.Slots
				for i := range n {
					f := pool.Join(fmt.Sprint("participant ", i))
					f.SetSlow(slow)
					all = append(all, f)
				}
				return all
			})
		})
	}
}

// sharing returns two schedulers of a local limit each over a pool.
func sharing(limit int, cfg stint.Config, pool *slotstest.Pool) (a, b stint.Scheduler, fa, fb *slotstest.Fake) {
	fa, fb = pool.Join("a"), pool.Join("b")
	cfg.Slots = fa
	a = stint.New(limit, cfg)
	cfg.Slots = fb
	b = stint.New(limit, cfg)
	return a, b, fa, fb
}

// wantAtRest checks that all is over, that every slot was released, and that
// none was released that was not held.
func wantAtRest(t *testing.T, s stint.Scheduler, f *slotstest.Fake) {
	t.Helper()
	synctest.Wait()
	if st := s.Stats(); st.Running != 0 || st.Queued != 0 {
		t.Errorf("%d run, %d are queued; want none", st.Running, st.Queued)
	}
	if n := f.Held(); n != 0 {
		t.Errorf("%d shared slots are held", n)
	}
	if m := f.Misuse(); len(m) > 0 {
		t.Errorf("misuse of the slots: %q", m)
	}
	if wants := f.Wants(); len(wants) > 0 && wants[len(wants)-1].Waiting != 0 {
		t.Errorf("the last Want was %+v, without waiters", wants[len(wants)-1])
	}
}

func TestSlots_LimitIsHardOverTwoSchedulers(t *testing.T) {
	for _, slow := range []bool{false, true} {
		for _, f := range forms {
			t.Run(fmt.Sprintf("%s/slow=%t", f.name, slow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(3))
					fa.SetSlow(slow)
					var inside gauge
					var wg sync.WaitGroup
					began := time.Now()
					for i := range 20 {
						wg.Go(func() {
							err := f.do(t.Context(), []stint.Scheduler{a, b}[i%2], func(context.Context) error {
								inside.enter()
								defer inside.leave()
								time.Sleep(time.Second)
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					if inside.most != 3 {
						t.Errorf("at most %d were inside at once, want 3", inside.most)
					}
					if took, want := time.Since(began), 7*time.Second; took != want {
						t.Errorf("took %v, want %v", took, want)
					}
					wantAtRest(t, a, fa)
					wantAtRest(t, b, fb)
				})
			})
		}
	}
}

// What a scheduler limits by itself, it limits on top.
func TestSlots_LocalLimitsApplyOnTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := slotstest.NewPool(10).Join("a")
		s := stint.New(4, stint.Config{Caps: stint.Caps{Low: 2}, PerKey: 1, Slots: f})
		ofKey := mustTry(t, s.Key("k"))
		if _, ok := s.Key("k").TryAcquire(t.Context()); ok {
			t.Error("passed the limit of the key")
		}
		plain := takeSlots(t, s, 1)
		if _, ok := s.At(stint.Low).TryAcquire(t.Context()); ok {
			t.Error("passed the cap of the tier")
		}
		plain = append(plain, takeSlots(t, s, 2)...)
		if _, ok := s.TryAcquire(t.Context()); ok {
			t.Error("passed the local limit")
		}
		if n := f.Held(); n != 4 {
			t.Errorf("%d shared slots are held, want 4", n)
		}
		ofKey.Release()
		plain.release()
		wantAtRest(t, s, f)
	})
}

// A waiter asks again when it is notified, and only then.
func TestSlots_WaiterAsksOnlyWhenNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(1))
		permit := mustTry(t, a)
		waiter := claimSlot(t.Context(), b)
		tries := fb.Tries()
		time.Sleep(time.Hour)
		if n := fb.Tries() - tries; n != 0 {
			t.Errorf("asked %d times while it waited", n)
		}
		releaseSlot(permit)
		if !waiter.holds() {
			t.Fatal("was not woken")
		}
		waiter.permit.Release()
		wantAtRest(t, a, fa)
		wantAtRest(t, b, fb)
	})
}

// An error that is not ErrNoSlot is returned to the caller.
func TestSlots_RefusedEntriesGetTheError(t *testing.T) {
	errBroken := errors.New("the connection is gone")
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := slotstest.NewPool(1)
				fake := pool.Join("a")
				s := stint.New(5, stint.Config{Slots: fake})
				permit := mustTry(t, s)
				waiting := ask(t.Context(), f, s, uncalled(t))
				pool.Break(errBroken)
				wantAnswer(t, waiting, errBroken)
				wantAnswer(t, ask(t.Context(), f, s, uncalled(t)), errBroken)
				if _, ok := s.TryAcquire(t.Context()); ok {
					t.Error("TryAcquire took a slot")
				}
				pool.Break(nil)
				permit.Release()
				wantAnswer(t, ask(t.Context(), f, s, func(context.Context) error { return nil }), nil)
				wantAtRest(t, s, fake)
			})
		})
	}
}

// A connection that is waited out is ErrNoSlot for as long as it is gone.
func TestSlots_WaitedOutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(1)
		fake := pool.Join("a")
		s := stint.New(5, stint.Config{Slots: fake})
		pool.Break(fmt.Errorf("%w: reconnecting", stint.ErrNoSlot))
		waiter := claimSlot(t.Context(), s)
		if !waiter.waits() {
			t.Fatalf("did not wait: %v", waiter.err)
		}
		if r := s.Waiting()[0].Reasons; len(r) != 1 || r[0].Code != stint.CodeShared || r[0].By == "" {
			t.Errorf("reasons are %+v, want what the slots say", r)
		}
		pool.Break(nil)
		synctest.Wait()
		if !waiter.holds() {
			t.Fatal("does not hold a slot after that")
		}
		waiter.permit.Release()
		wantAtRest(t, s, fake)
	})
}

// The context of work whose slot is taken away ends, and the slot is not released.
func TestSlots_LostGrantEndsTheWork(t *testing.T) {
	errLease := errors.New("the lease ran out")
	for _, f := range nesting {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(1))
				var cause error
				answer := ask(t.Context(), f, a, func(ctx context.Context) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					time.Sleep(time.Minute) // it takes its time to clean up
					return nil
				})
				other := claimSlot(t.Context(), b)
				fa.Lose(errLease)
				synctest.Wait()
				if !errors.Is(cause, stint.ErrSlotLost) || !errors.Is(cause, errLease) {
					t.Errorf("the cause is %v, want ErrSlotLost and why", cause)
				}
				if !other.holds() {
					t.Error("the slot did not go to the waiter")
				}
				time.Sleep(time.Hour)
				wantAnswer(t, answer, nil)
				if n := fb.Held(); n != 1 {
					t.Errorf("the other holds %d slots, want 1", n)
				}
				other.permit.Release()
				wantAtRest(t, a, fa)
				wantAtRest(t, b, fb)
			})
		})
	}
}

// Code between Acquire and the Release of its permit is not notified that its slot is
// lost. Release then frees the slot of the scheduler, but no shared slot.
func TestSlots_LostGrantOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(2))
		ofA := takeSlots(t, a, 2)
		fa.Lose(errors.New("the lease ran out"))
		ofB := takeSlots(t, b, 2)
		wantCounts(t, a, 2, 0)
		ofA.release()
		if n := fb.Held(); n != 2 {
			t.Errorf("the other holds %d slots, want 2", n)
		}
		releaseSlot(ofB[0])
		again := mustTry(t, a)
		again.Release()
		ofB[1].Release()
		wantAtRest(t, a, fa)
		wantAtRest(t, b, fb)
	})
}

func TestSlots_NestedWorkSuspendsTheSharedSlot(t *testing.T) {
	for _, slow := range []bool{false, true} {
		for _, way := range waits {
			t.Run(fmt.Sprintf("%s/slow=%t", way.name, slow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, fa, fb := sharing(3, stint.Config{}, slotstest.NewPool(1))
					fb.SetSlow(slow)
					var in gauge
					var wg sync.WaitGroup
					for i := range 6 {
						s := []stint.Scheduler{a, b}[i%2]
						wg.Go(func() {
							_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
								return 0, way.call(ctx, s, 3, busy(t, s, &in))
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
					wantAtRest(t, a, fa)
					wantAtRest(t, b, fb)
				})
			})
		}
	}
}

// A function that cannot have its slot back, because there are none to be had,
// goes on as one that has lost it.
func TestSlots_NoSlotToComeBackTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(1)
		fake := pool.Join("a")
		s := stint.New(1, stint.Config{Slots: fake})
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			_, err := stint.Run(ctx, s, func(context.Context) (int, error) {
				pool.Break(errors.New("the connection is gone"))
				return 0, nil
			})
			if cause := context.Cause(ctx); !errors.Is(cause, stint.ErrSlotLost) {
				t.Errorf("the context ended with cause %v, want ErrSlotLost", cause)
			}
			return 0, err
		})
		if err != nil {
			t.Error(err)
		}
		pool.Break(nil)
		wantAtRest(t, s, fake)
	})
}

// A grant may be lost at any moment of a nested call, and the function learns
// of it whichever it is.
func TestSlots_LostWhileItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := slotstest.NewPool(1).Join("a")
		s := stint.New(1, stint.Config{Slots: fake})
		for range 200 {
			f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
				_, _ = stint.Run(ctx, s, nothing)
				<-ctx.Done()
				return 0, context.Cause(ctx)
			})
			for range 3 {
				go fake.Lose(errors.New("the lease ran out"))
			}
			synctest.Wait()
			fake.Lose(errors.New("the lease ran out")) // if the others came too early
			if _, err := f.Wait(t.Context()); !errors.Is(err, stint.ErrSlotLost) {
				t.Fatalf("error is %v, want ErrSlotLost", err)
			}
			wantAtRest(t, s, fake)
		}
	})
}

func TestSlots_WeightIsTooHeavy(t *testing.T) {
	s := stint.New(5, stint.Config{Slots: slotstest.NewPool(5).Join("a")})
	if _, err := s.Weight(2).Acquire(t.Context()); !errors.Is(err, stint.ErrTooHeavy) {
		t.Errorf("error is %v, want ErrTooHeavy", err)
	}
	if _, ok := s.Weight(2).TryAcquire(t.Context()); ok {
		t.Error("TryAcquire took two shared slots at once")
	}
}

func TestB6_SharedStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(2))
		ofA, ofB := mustTry(t, a), mustTry(t, b)
		waiter := claimSlot(t.Context(), b)
		got := a.Stats().Shared
		if got == nil || got.Max != 2 || got.Running != 2 || got.Waiting != 1 {
			t.Fatalf("shared is %+v", got)
		}
		want := []stint.Holder{{Name: "a", Slots: 1}, {Name: "b", Slots: 1, Waiting: 1}}
		if !slices.Equal(got.Holders, want) {
			t.Errorf("holders are %+v, want %+v", got.Holders, want)
		}
		if stint.New(1, stint.Config{}).Stats().Shared != nil {
			t.Error("a scheduler with slots of its own has shared ones")
		}
		releaseSlot(ofA)
		if !waiter.holds() {
			t.Error("the waiter got nothing")
		}
		ofB.Release()
		waiter.permit.Release()
		wantAtRest(t, a, fa)
		wantAtRest(t, b, fb)
	})
}

func TestSlots_CloseAndDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fa, fb := sharing(5, stint.Config{}, slotstest.NewPool(1))
		permit := mustTry(t, a)
		queued, refused := stint.Go(t.Context(), b, nothing), stint.Go(t.Context(), a, nothing)
		synctest.Wait()
		a.Close()
		if _, err := refused.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
			t.Errorf("error is %v, want ErrClosed", err)
		}
		drained := make(chan error, 1)
		go func() { drained <- b.Drain(t.Context()) }()
		synctest.Wait()
		if len(drained) > 0 {
			t.Fatal("drained while an entry waits")
		}
		permit.Release()
		if _, err := queued.Wait(t.Context()); err != nil || <-drained != nil {
			t.Errorf("error is %v", err)
		}
		wantAtRest(t, a, fa)
		wantAtRest(t, b, fb)
	})
}
