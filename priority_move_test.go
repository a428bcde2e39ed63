package stint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/internal/slotstest"
)

// lined is functions that are queued on a paused scheduler, by name, and the order in which they
// are called.
type lined struct {
	t       *testing.T
	s       stint.Scheduler
	futures map[string]*stint.Future[int]
	order   []string
}

func newLined(t *testing.T, s stint.Scheduler) *lined {
	t.Helper()
	s.Pause("test")
	return &lined{t: t, s: s, futures: map[string]*stint.Future[int]{}}
}

func (l *lined) add(ctx context.Context, s stint.Scheduler, names ...string) {
	for _, name := range names {
		l.futures[name] = stint.Go(ctx, s, func(context.Context) (int, error) {
			l.order = append(l.order, name)
			return 0, nil
		})
	}
}

func (l *lined) move(name string, to stint.Priority) {
	l.t.Helper()
	if !l.futures[name].SetPriority(to) {
		l.t.Errorf("SetPriority of %q, which is queued, = false", name)
	}
}

func (l *lined) want(names ...string) {
	l.t.Helper()
	l.s.Resume()
	atRest(l.t, l.s)
	if !slices.Equal(l.order, names) {
		l.t.Errorf("called in the order %q, want %q", l.order, names)
	}
}

func TestA2_SetPriorityMovesToTheEndOfTheTier(t *testing.T) {
	for _, key := range []string{"", "a"} {
		for _, weight := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(weight, stint.Config{}).Key(key).Weight(weight)
				l := newLined(t, s)
				l.add(t.Context(), s, "a", "b", "c", "d")
				l.add(t.Context(), s.At(stint.High), "x", "y")
				l.move("c", stint.High)
				l.move("a", stint.High)
				l.move("y", stint.Lowest)
				l.move("c", stint.Highest)
				l.move("b", stint.Normal) // it has that
				l.want("c", "x", "a", "b", "d", "y")
			})
		}
	}
}

func TestA2_SetPriorityOfWhatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		p := stint.NewPromise[int]()
		runs := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) { return p.Future().Wait(ctx) })
		synctest.Wait()
		pending := stint.Then(t.Context(), s, p.Future(), toText)
		for name, moved := range map[string]bool{
			"a promise":                      p.Future().SetPriority(stint.High),
			"a function that runs":           runs.SetPriority(stint.High),
			"a continuation of what is open": pending.SetPriority(stint.High),
		} {
			if moved {
				t.Errorf("SetPriority of %s = true", name)
			}
		}
		s.Pause("test")
		p.Resolve(1)
		synctest.Wait()
		if !pending.SetPriority(stint.High) || s.Stats().QueuedBy[stint.High-stint.Lowest] != 1 {
			t.Error("a continuation that is queued is not moved")
		}
		s.Clear()
		if pending.SetPriority(stint.Low) || runs.SetPriority(stint.Low) {
			t.Error("SetPriority of a settled future = true")
		}
		if text, _ := panicOf(func() { pending.SetPriority(4) }).(string); text == "" {
			t.Error("SetPriority to what is no tier does not panic")
		}
		s.Resume()
		atRest(t, s)
	})
}

// What was over its tier's cap starts at once in another tier.
func TestB2_SetPriorityStartsWhatMayStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1, Normal: 2}})
		permit := mustTry(t, s)
		f := stint.Go(t.Context(), s.At(stint.Low), value(7))
		synctest.Wait()
		if settled(f) {
			t.Fatal("tier low started over its cap")
		}
		if !f.SetPriority(stint.High) {
			t.Error("SetPriority = false")
		}
		if v, err := f.Wait(t.Context()); v != 7 || err != nil {
			t.Errorf("Wait = %d, %v; want 7, nil", v, err)
		}
		permit.Release()
		atRest(t, s)
	})
}

// For people, a function that was moved waits since it came.
func TestB6_SetPriorityKeepsSince(t *testing.T) {
	for _, key := range []string{"", "a"} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{}).Key(key)
			l := newLined(t, s)
			l.add(t.Context(), s, "a")
			first, _ := l.futures["a"].Why()
			came := first.Since
			time.Sleep(time.Minute)
			l.add(t.Context(), s.At(stint.High), "b")
			for _, to := range []stint.Priority{stint.Low, stint.High} {
				time.Sleep(time.Minute)
				l.move("a", to)
				w, waiting := l.futures["a"].Why()
				if !waiting || w.Priority != to || !w.Since.Equal(came) || w.Key != key {
					t.Errorf("Why = %+v, %t; want tier %v since %v", w, waiting, to, came)
				}
			}
			all := s.Waiting()
			if len(all) != 2 || all[0].Ahead != 0 || all[1].Ahead != 1 || !all[1].Since.Equal(came) {
				t.Errorf("Waiting = %+v, want the one that was moved behind the other, since %v", all, came)
			}
			l.want("b", "a")
		})
	}
}

// A full queue is as full as before, whatever is moved in it.
func TestA8_SetPriorityInAFullQueue(t *testing.T) {
	for _, whenFull := range []stint.WhenFull{stint.Block, stint.Refuse} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{Queue: 2, WhenFull: whenFull})
			l := newLined(t, s)
			l.add(t.Context(), s, "a", "b")
			late := make(chan error, 1)
			go func() {
				_, err := stint.Go(t.Context(), s.At(stint.Highest), value(1)).Wait(t.Context())
				late <- err
			}()
			synctest.Wait()
			l.move("b", stint.High)
			l.move("a", stint.Highest)
			synctest.Wait()
			if st := s.Stats(); st.Queued != 2 || (st.Blocked == 1) != (whenFull == stint.Block) {
				t.Errorf("%d queued, %d blocked", st.Queued, st.Blocked)
			}
			l.want("a", "b")
			if err := <-late; (err != nil) != (whenFull == stint.Refuse) {
				t.Errorf("the one that found the queue full: %v", err)
			}
		})
	}
}

// What was moved is found by Cancel, by the end of its context and by Clear.
func TestA6_SetPriorityThenCancel(t *testing.T) {
	for _, key := range []string{"", "a"} {
		for _, others := range []int{0, 3} {
			for _, by := range []string{"Cancel", "its context", "Clear"} {
				t.Run(fmt.Sprintf("key %q, %d others, %s", key, others, by), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := stint.New(1, stint.Config{}).Key(key)
						l := newLined(t, s)
						ctx, cancel := context.WithCancelCause(t.Context())
						l.add(ctx, s, "moved")
						other, stop := context.WithCancel(t.Context())
						defer stop()
						for i := range others { // of another context, which is the one used last
							l.add(other, s.At(stint.Low), fmt.Sprint(i))
						}
						l.move("moved", stint.Low)
						f := l.futures["moved"]
						want := errBoom
						switch by {
						case "Cancel":
							f.Cancel(errBoom)
						case "Clear":
							if n := s.Clear(); n != 1+others {
								t.Errorf("Clear() = %d, want %d", n, 1+others)
							}
							want = stint.ErrCleared
						default:
							cancel(errBoom)
						}
						if _, err := f.Wait(t.Context()); !errors.Is(err, want) {
							t.Errorf("Wait: %v, want %v", err, want)
						}
						if n := s.Stats().Queued; by != "Clear" && n != others {
							t.Errorf("%d queued, want %d", n, others)
						}
						cancel(nil)
						s.Resume()
						atRest(t, s)
					})
				})
			}
		}
	}
}

func TestB8_SetPriorityWithSharedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fa, fb := sharing(1, stint.Config{}, slotstest.NewPool(1))
		permit := mustTry(t, b)
		l := &lined{t: t, s: a, futures: map[string]*stint.Future[int]{}}
		l.add(t.Context(), a, "a", "b", "c")
		synctest.Wait()
		l.move("c", stint.High)
		if wants := fa.Wants(); wants[len(wants)-1].Tier != stint.High {
			t.Errorf("the last Want is %+v, want tier high", wants[len(wants)-1])
		}
		permit.Release()
		l.want("c", "a", "b")
		wantAtRest(t, a, fa)
		wantAtRest(t, b, fb)
	})
}

// Everything at once, on real threads.
func TestA2_SetPriorityStress(t *testing.T) {
	const each = 2000
	seed := seeded.Seed(t)
	s := stint.New(2, stint.Config{PerKey: 1})
	var ran, moved atomic.Int32
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for n := range each {
				var futures []*stint.Future[int]
				for range 5 {
					view := s.Key([]string{"", "a", "b"}[rnd.IntN(3)]).At(stint.Priority(rnd.IntN(stint.Tiers) - 3))
					futures = append(futures, stint.Go(ctx, view, func(context.Context) (int, error) {
						return int(ran.Add(1)), nil
					}))
				}
				for _, f := range futures {
					if f.SetPriority(stint.Priority(rnd.IntN(stint.Tiers) - 3)) {
						moved.Add(1)
					}
				}
				switch {
				case n%50 == 0:
					s.Waiting()
				case n%20 == 0:
					cancel()
					ctx, cancel = context.WithCancel(t.Context()) //nolint:fatcontext // it contains none of the others
				case n%3 == 0:
					go futures[0].Cancel(nil)
					go futures[0].SetPriority(stint.Highest)
				}
				for _, f := range futures {
					if _, err := f.Wait(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("Wait: %v", err)
					}
				}
			}
			cancel()
		})
	}
	wg.Wait()
	if err := s.Drain(t.Context()); err != nil || s.Stats().Queued != 0 {
		t.Errorf("Drain: %v, %d queued", err, s.Stats().Queued)
	}
	t.Logf("%d ran, %d were moved", ran.Load(), moved.Load())
}
