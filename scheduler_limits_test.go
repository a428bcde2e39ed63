package stint_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

func TestA5_AtMostPerKeyRun(t *testing.T) {
	const perKey, calls = 2, 9
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(100, stint.Config{PerKey: perKey})
				inside := map[string]*gauge{"a": {}, "b": {}, "": {}}
				var wg sync.WaitGroup
				began := time.Now()
				for key, in := range inside {
					for range calls {
						wg.Go(func() {
							err := f.do(t.Context(), s.Key(key), func(context.Context) error {
								in.enter()
								defer in.leave()
								time.Sleep(time.Second)
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						})
					}
				}
				wg.Wait()
				for key, want := range map[string]int{"a": perKey, "b": perKey, "": calls} {
					if got := inside[key].most; got != want {
						t.Errorf("at most %d of key %q were inside at once, want %d", got, key, want)
					}
				}
				if took, want := time.Since(began), 5*time.Second; took != want {
					t.Errorf("took %v, want %v: the keys hold each other up", took, want)
				}
				wantAllFree(t, s)
			})
		})
	}
}

// A key at its limit is passed by, within its tier and by lower ones.
func TestA5_KeyAtItsLimitDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{PerKey: 1})
		a, b := s.Key("a"), s.Key("b")
		first := mustTry(t, a)
		behind := claimSlot(t.Context(), a)
		higher := claimSlot(t.Context(), a.At(stint.Highest))
		if !behind.waits() || !higher.waits() {
			t.Fatal("the key's limit was passed")
		}
		ofB := mustTry(t, b)
		lowest := mustTry(t, s.At(stint.Lowest))
		releaseSlot(first)
		if !higher.holds() || !behind.waits() {
			t.Fatal("the key's own slot did not go to its highest tier")
		}
		releaseSlot(&higher.permit)
		if !behind.holds() {
			t.Fatal("the key's last entry was not started")
		}
		behind.permit.Release()
		ofB.Release()
		lowest.Release()
		wantAllFree(t, s)
	})
}

// A heavy head holds back those behind it, but not when its key is at its
// limit: it is not what will start next then.
func TestA5_KeyAtItsLimitReservesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{PerKey: 2})
		a := s.Key("a")
		first := mustTry(t, a)
		heavy := claimSlot(t.Context(), a.Weight(4))
		light := claimSlot(t.Context(), s)
		if !heavy.waits() || !light.waits() {
			t.Fatal("the heavy head was passed over")
		}
		high := mustTry(t, a.At(stint.High))
		synctest.Wait()
		if !light.holds() {
			t.Fatal("held back by an entry that may not start")
		}
		first.Release()
		high.Release()
		releaseSlot(&light.permit)
		if !heavy.holds() {
			t.Fatal("the heavy one was not started")
		}
		heavy.permit.Release()
		wantAllFree(t, s)
	})
}

func TestA5_KeysTakeTurnsByTheirShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := map[string]int{"small": 1, "big": 3}
		s := stint.New(1, stint.Config{Share: func(key string) int { return shares[key] }})
		permit := mustTry(t, s)
		var started journal
		for _, key := range []string{"small", "big"} {
			for range 40 {
				stint.Go(t.Context(), s.Key(key), func(context.Context) (int, error) {
					started.add("%s", key)
					return 0, nil
				})
			}
		}
		releaseSlot(permit)
		for from := 0; from+4 <= 40; from += 4 {
			small := 0
			for _, key := range started.lines[from : from+4] {
				if key == "small" {
					small++
				}
			}
			if small != 1 {
				t.Fatalf("starts %d to %d: %v", from, from+4, started.lines[from:from+4])
			}
		}
		wantAllFree(t, s)
	})
}

func TestA5_IdleKeysCostNoMemory(t *testing.T) {
	s := stint.New(1, stint.Config{PerKey: 1})
	use := func(from, to int) {
		for i := from; i < to; i++ {
			view := s.Key(fmt.Sprintf("tenant %d with a name that is not short", i))
			mustAcquire(t, view).Release()
		}
	}
	use(0, 1000)
	before := heap()
	use(1000, 60_000)
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("59,000 keys that were used left %d bytes behind", grown)
	}
}

// What a scheduler has recorded of work that had slots at the same time is gone when that has ended.
func TestA1_EndedWorkCostsNoMemory(t *testing.T) {
	const n = 50_000
	ctx := context.WithoutCancel(t.Context()) // which records no context that is derived from it
	for name, use := range map[string]func(stint.Scheduler){
		"permits": func(s stint.Scheduler) {
			for _, p := range takeSlots(t, s, n) {
				p.Release()
			}
		},
		"groups": func(s stint.Scheduler) {
			groups := make([]*stint.Group, n)
			for i := range groups {
				groups[i] = stint.NewGroup(ctx, s)
			}
			for _, g := range groups {
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		s := stint.New(n, stint.Config{Holders: true})
		before := heap()
		use(s)
		if left := int64(heap()) - int64(before); left > 64<<10 {
			t.Errorf("%d %s that were used at the same time left %d bytes behind", n, name, left)
		}
		runtime.KeepAlive(s)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A heavy entry at the head is waited for: lighter ones do not pass it, in its
// tier or below, or it would starve.
func TestA2_HeavyHeadIsNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{})
		permits := takeSlots(t, s, 2)
		heavy := claimSlot(t.Context(), s.Weight(3))
		light := claimSlot(t.Context(), s)
		lower := claimSlot(t.Context(), s.At(stint.Low))
		high := mustTry(t, s.At(stint.High)) // a higher tier is not held back
		releaseSlot(permits[0])
		releaseSlot(permits[1])
		if !heavy.waits() || !light.waits() || !lower.waits() {
			t.Fatal("a waiter started although the head needs more slots")
		}
		releaseSlot(high)
		if !heavy.holds() || !light.waits() || !lower.waits() {
			t.Fatal("the head was not started first")
		}
		releaseSlot(&heavy.permit)
		if !light.holds() || !lower.holds() {
			t.Fatal("those behind were not started")
		}
		light.permit.Release()
		lower.permit.Release()
		wantAllFree(t, s)
	})
}

func TestA2_WeightIsCountedInSlots(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(5, stint.Config{})
				var wg sync.WaitGroup
				began := time.Now()
				for range 6 {
					wg.Go(func() {
						_ = f.do(t.Context(), s.Weight(2), func(context.Context) error {
							if st := s.Stats(); st.Running > st.Limit || st.Running%2 != 0 {
								t.Errorf("%d slots in use", st.Running)
							}
							time.Sleep(time.Second)
							return nil
						})
					})
				}
				wg.Wait()
				if took, want := time.Since(began), 3*time.Second; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				if err := f.do(t.Context(), s.Weight(6), nil); !errors.Is(err, stint.ErrTooHeavy) {
					t.Errorf("heavier than the limit: %v, want ErrTooHeavy", err)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestB5_ResizeUpStartsAtOnce(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				var inside gauge
				var wg sync.WaitGroup
				for range 6 {
					wg.Go(func() {
						_ = f.do(t.Context(), s, func(context.Context) error {
							inside.enter()
							defer inside.leave()
							time.Sleep(time.Hour)
							return nil
						})
					})
				}
				wantCounts(t, s, 1, 5)
				s.Resize(4)
				wantCounts(t, s, 4, 2)
				wg.Wait()
				if inside.most != 4 {
					t.Errorf("at most %d were inside at once, want 4", inside.most)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestB5_ResizeDownDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{})
		permits := takeSlots(t, s, 4)
		waiter := claimSlot(t.Context(), s)
		s.Resize(2)
		wantCounts(t, s, 4, 1)
		releaseSlot(permits[0])
		releaseSlot(permits[1])
		if !waiter.waits() {
			t.Fatal("started above the new limit")
		}
		releaseSlot(permits[2])
		if !waiter.holds() {
			t.Fatal("not started below the new limit")
		}
		wantCounts(t, s, 2, 0)
		if _, ok := s.TryAcquire(t.Context()); ok {
			t.Error("took a slot above the new limit")
		}
		permits[3].Release()
		waiter.permit.Release()
		wantAllFree(t, s)
	})
}

func TestB5_SetCapsStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{Caps: stint.Caps{Low: 1}})
		low := s.At(stint.Low)
		permit := mustTry(t, low)
		first, second := claimSlot(t.Context(), low), claimSlot(t.Context(), low)
		s.SetCaps(stint.Caps{Low: 2})
		synctest.Wait()
		if !first.holds() || !second.waits() {
			t.Fatal("a cap of 2 did not let in exactly one more")
		}
		s.SetCaps(stint.Caps{})
		synctest.Wait()
		if !second.holds() {
			t.Fatal("no caps did not let in the last")
		}
		s.SetCaps(stint.Caps{Low: 1})
		if _, ok := low.TryAcquire(t.Context()); ok {
			t.Error("a lower cap is not in force")
		}
		permit.Release()
		first.permit.Release()
		second.permit.Release()
		wantAllFree(t, s)
	})
}

func TestB5_SetPerKeyStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(9, stint.Config{PerKey: 1})
		a := s.Key("a")
		permit := mustTry(t, a)
		waiting := []*claim{claimSlot(t.Context(), a), claimSlot(t.Context(), a), claimSlot(t.Context(), a)}
		s.SetPerKey(3)
		wantCounts(t, s, 3, 1)
		s.SetPerKey(0)
		wantCounts(t, s, 4, 0)
		s.SetPerKey(2)
		late := claimSlot(t.Context(), a)
		releaseSlot(permit)
		releaseSlot(&waiting[0].permit)
		if !late.waits() {
			t.Fatal("started while the key was at its new limit")
		}
		releaseSlot(&waiting[1].permit)
		if !late.holds() || !waiting[2].holds() {
			t.Fatal("not started below the key's new limit")
		}
		waiting[2].permit.Release()
		late.permit.Release()
		wantAllFree(t, s)
	})
}

// A change of the limit that refuses nothing takes no time and memory in proportion to the queue.
func TestB5_ResizeDoesNotCopyTheQueue(t *testing.T) {
	s := stint.New(4, stint.Config{})
	permit, err := s.Weight(4).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := stint.NewGroup(t.Context(), s)
	keyed := stint.NewGroup(t.Context(), s.Key("a"))
	for range 1000 {
		g.Go(func(context.Context) error { return nil })
		keyed.Go(func(context.Context) error { return nil })
	}
	for _, limit := range []int{4, 3, 1} {
		if n := testing.AllocsPerRun(10, func() { s.Resize(limit) }); n >= 1 {
			t.Errorf("Resize(%d) makes %.0f allocations, want 0", limit, n)
		}
	}
	permit.Release()
	if err := errors.Join(g.Wait(), keyed.Wait()); err != nil {
		t.Error(err)
	}
}

// Entries that can never run after a change are answered, wherever they wait.
func TestB5_ResizeAnswersWhatCanNeverRun(t *testing.T) {
	for _, c := range []struct {
		limit  int
		answer error
	}{{2, stint.ErrTooHeavy}, {0, stint.ErrNoCapacity}} {
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := stint.New(3, stint.Config{})
					permits := takeSlots(t, s, 3)
					answers := make(chan error, 1)
					go func() { answers <- f.do(t.Context(), s.Weight(3), nil) }()
					synctest.Wait()
					s.Resize(c.limit)
					synctest.Wait()
					if len(answers) == 0 {
						t.Fatalf("Resize(%d) left it in the queue", c.limit)
					}
					if err := <-answers; !errors.Is(err, c.answer) {
						t.Errorf("Resize(%d) answered %v, want %v", c.limit, err, c.answer)
					}
					if err := f.do(t.Context(), s.Weight(3), nil); !errors.Is(err, c.answer) {
						t.Errorf("after Resize(%d): %v, want %v", c.limit, err, c.answer)
					}
					permits.release()
					s.Resize(3)
					wantAllFree(t, s)
				})
			})
		}
	}
}

func TestB7_NoCapacityIsAnAnswer(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(0, stint.Config{})
				if err := f.do(t.Context(), s, nil); !errors.Is(err, stint.ErrNoCapacity) {
					t.Errorf("error is %v, want ErrNoCapacity", err)
				}
				s.Resize(1)
				if err := f.do(t.Context(), s, func(context.Context) error { return nil }); err != nil {
					t.Errorf("after Resize: %v", err)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestB5_PauseAndResume(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(2, stint.Config{})
				permit := mustTry(t, s)
				s.Pause("the test")
				started := false
				answers := make(chan error, 1)
				go func() {
					answers <- f.do(t.Context(), s, func(context.Context) error { started = true; return nil })
				}()
				wantCounts(t, s, 1, 1)
				releaseSlot(permit)
				s.Resize(5)
				synctest.Wait()
				if started {
					t.Fatal("started while the scheduler was paused")
				}
				s.Resume()
				synctest.Wait()
				if !started || <-answers != nil {
					t.Fatal("not started by Resume")
				}
				wantAllFree(t, s)
			})
		})
	}
}

// The order in which parked starts go off does not depend on how they were
// let go.
func TestB5_ManyStartAtOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		claims := make([]*claim, 40)
		for i := range claims {
			claims[i] = claimSlot(t.Context(), s)
		}
		for limit := 2; limit <= 41; limit += 3 {
			s.Resize(limit)
			synctest.Wait()
			waits := slices.IndexFunc(claims, (*claim).waits)
			if want := limit - 1; limit < 41 && waits != want {
				t.Fatalf("with a limit of %d the first that waits is %d, want %d", limit, waits, want)
			}
		}
		permit.Release()
		for _, c := range claims {
			c.permit.Release()
		}
		wantAllFree(t, s)
	})
}
