package stint_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
)

// These tests run on real processors, where the race detector sees what a
// bubble's goroutines, which take turns at what they wait for, seldom do.

// noLeaks fails the test if it ends with more goroutines than it has now.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 1_000_000 {
			if runtime.NumGoroutine() <= before {
				return
			}
			runtime.Gosched()
		}
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
			stacks[:runtime.Stack(stacks, true)])
	})
}

// mob is goroutines that do everything at once.
type mob struct {
	t      *testing.T
	s      stint.Scheduler
	limit  int64 // the largest that the scheduler ever has
	inside atomic.Int64
	perKey [3]atomic.Int64
	calls  atomic.Int64
}

// enter is called after weight slots were taken, and leave before they are released.
func (m *mob) enter(weight int) {
	if n := m.inside.Add(int64(weight)); n > m.limit {
		m.t.Errorf("%d slots in use, the limit is %d", n, m.limit)
	}
	m.calls.Add(1)
}

func (m *mob) leave(weight int) { m.inside.Add(int64(-weight)) }

func (m *mob) body(weight, key int, perKey int64) func(context.Context) error {
	return func(context.Context) error {
		m.enter(weight)
		if n := m.perKey[key].Add(1); key > 0 && n > perKey {
			m.t.Errorf("%d of one key run, the limit is %d", n, perKey)
		}
		if weight == 2 {
			runtime.Gosched()
		}
		m.perKey[key].Add(-1)
		m.leave(weight)
		return nil
	}
}

// act does one random thing. Whatever is refused is refused with an answer that
// is expected.
func (m *mob) act(rnd *rand.Rand, perKey int64) {
	ctx, cancel := context.WithCancelCause(m.t.Context())
	defer cancel(nil)
	if rnd.IntN(4) == 0 {
		go cancel(errAsked)
	}
	weight, key := 1+rnd.IntN(6)/5, max(0, rnd.IntN(6)-3)
	view := m.s.At(stint.Priority(rnd.IntN(stint.Tiers)) + stint.Lowest).Weight(weight).Key([]string{"", "a", "b"}[key])
	body := m.body(weight, key, perKey)
	var err error
	switch f := forms[rnd.IntN(len(forms))]; rnd.IntN(8) {
	case 0, 1:
		if p, ok := view.TryAcquire(ctx); ok {
			_ = body(ctx)
			p.Release()
		}
	case 2, 3, 4:
		err = f.do(ctx, view, body)
	default:
		err = nesting[rnd.IntN(len(nesting))].do(ctx, m.s, func(ctx context.Context) error {
			_, err := stint.Run(ctx, view, valued(body))
			return err
		})
	}
	expected := err == nil || errors.Is(err, errAsked) || errors.Is(err, stint.ErrCleared) ||
		errors.Is(err, stint.ErrTooHeavy)
	if !expected {
		m.t.Errorf("error is %v", err)
	}
}

func (m *mob) run(seed uint64, actors, acts int, perKey int64) {
	var wg sync.WaitGroup
	for i := range actors {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for range acts {
				m.act(rnd, perKey)
			}
		})
	}
	wg.Wait()
}

func TestStress_SlotsAreNeverOvercommitted(t *testing.T) {
	noLeaks(t)
	seed := seeded.Seed(t)
	for _, limit := range []int{2, 5, 64} {
		s := stint.New(limit, stint.Config{PerKey: 2, Caps: stint.Caps{Low: (limit + 1) / 2}})
		m := &mob{t: t, s: s, limit: int64(limit)}
		m.run(seed, 32, 400, 2)
		checkAllFree(t, s)
	}
}

// Everything that may change while work runs changes all the time.
func TestStress_LimitsChangeAllTheTime(t *testing.T) {
	noLeaks(t)
	seed := seeded.Seed(t)
	const limit = 8
	s := stint.New(limit, stint.Config{PerKey: 3})
	m := &mob{t: t, s: s, limit: limit}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		rnd := rand.New(rand.NewPCG(seed, 1<<32))
		for {
			select {
			case <-stop:
				return
			default:
				m.change(rnd)
			}
		}
	}()
	m.run(seed, 32, 400, 3)
	close(stop)
	<-stopped
	s.Resume()
	s.Resize(limit)
	s.SetCaps(stint.Caps{})
	checkAllFree(t, s)
}

// change changes one thing. The limit stays at 1 or more, and a pause is short,
// so that all that waits gets its turn.
func (m *mob) change(rnd *rand.Rand) {
	switch rnd.IntN(8) {
	case 0, 1:
		m.s.Resize(1 + rnd.IntN(int(m.limit)))
	case 2:
		m.s.SetCaps(stint.Caps{Lowest: 1 + rnd.IntN(3), Low: 3 + rnd.IntN(3)})
	case 3:
		m.s.SetPerKey(1 + rnd.IntN(3))
	case 4:
		m.s.Pause("the test")
		runtime.Gosched()
		m.s.Resume()
	case 5:
		m.s.Clear()
	case 6:
		m.s.Waiting()
	default:
		m.s.At(stint.Low).Key("a").Why()
		runtime.Gosched()
	}
}

// A slot that is granted to a waiter at the moment of its cancellation is not lost,
// whichever of the two comes first.
func TestA6_CancelRacesAGrant(t *testing.T) {
	noLeaks(t)
	for _, f := range forms {
		s := stint.New(1, stint.Config{})
		granted, cancelled := 0, 0
		for i := range 1500 {
			ctx, cancel := context.WithCancelCause(t.Context())
			permit := mustTry(t, s)
			answer := make(chan error, 1)
			go func() { answer <- f.do(ctx, s, func(context.Context) error { return nil }) }()
			for s.Stats().Queued == 0 {
				runtime.Gosched()
			}
			first, then := permit.Release, func() { cancel(errAsked) }
			if i%2 == 0 {
				first, then = then, first
			}
			var both sync.WaitGroup
			both.Go(first)
			then()
			both.Wait()
			switch err := <-answer; {
			case err == nil:
				granted++
			case errors.Is(err, errAsked):
				cancelled++
			default:
				t.Fatalf("%s: %v", f.name, err)
			}
			checkAllFree(t, s)
		}
		t.Logf("%s: %d granted, %d cancelled", f.name, granted, cancelled)
	}
}

// Close comes at any moment: all waiters get an answer, and all holders can release
// their slots.
func TestB7_CloseRacesEverything(t *testing.T) {
	noLeaks(t)
	for round := range 200 {
		s := stint.New(2, stint.Config{PerKey: 1, Queue: 3})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for _, f := range nesting {
					err := f.do(t.Context(), s.Key([]string{"", "a"}[i%2]), func(ctx context.Context) error {
						_, err := stint.Run(ctx, s, nothing)
						return err
					})
					if err != nil && !errors.Is(err, stint.ErrClosed) {
						t.Errorf("%s: %v", f.name, err)
					}
				}
			})
		}
		for range round {
			runtime.Gosched()
		}
		if round%2 == 0 {
			s.Close()
		} else if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if st := s.Stats(); st.Running != 0 || st.Queued != 0 || st.Blocked != 0 {
			t.Fatalf("round %d: %+v", round, st)
		}
	}
}

// A function's goroutines suspend and resume its one slot in any interleaving,
// while others come and go and want the same.
func TestStress_GoroutinesOfOneFunction(t *testing.T) {
	noLeaks(t)
	s := stint.New(1, stint.Config{})
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = stint.Run(t.Context(), s, nothing)
				runtime.Gosched()
			}
		}
	})
	for range 400 {
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			var wg sync.WaitGroup
			for _, way := range waits {
				wg.Go(func() {
					if err := way.call(ctx, s, 3, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	others.Wait()
	checkAllFree(t, s)
}

// No more jobs wait than a bounded queue has room for, however they are submitted, and
// whenever Stats is read.
func TestStress_BoundHolds(t *testing.T) {
	noLeaks(t)
	const room, submitters, jobs = 3, 8, 400
	for _, when := range []stint.WhenFull{stint.Block, stint.Refuse} {
		s := stint.New(2, stint.Config{Queue: room, WhenFull: when, Caps: stint.Caps{Low: 1}})
		var all sync.WaitGroup
		var left atomic.Int64
		left.Store(submitters)
		for i := range submitters {
			all.Go(func() {
				defer left.Add(-1)
				view := s.At(stint.Lowest + stint.Priority(i%stint.Tiers))
				futures := make([]*stint.Future[int], jobs)
				for j := range futures {
					futures[j] = stint.Go(t.Context(), view, nothing)
				}
				for _, f := range futures {
					if _, err := f.Wait(t.Context()); err != nil && !errors.Is(err, stint.ErrQueueFull) {
						t.Error(err)
					}
				}
			})
		}
		for left.Load() > 0 {
			if st := s.Stats(); st.Queued > room {
				t.Errorf("%d are queued, there is room for %d", st.Queued, room)
				break
			}
			runtime.Gosched()
		}
		all.Wait()
		checkAllFree(t, s)
	}
}

// What a group's function leaves behind may call Run with the function's context, while the
// function ends or after that.
func TestA4_RunOutlivesItsGroupFunction(t *testing.T) {
	s := stint.New(2, stint.Config{})
	var left sync.WaitGroup
	for range 100 {
		g := stint.NewGroup(t.Context(), s)
		g.Go(func(ctx context.Context) error {
			left.Go(func() { _, _ = stint.Run(context.WithoutCancel(ctx), s, nothing) })
			return nil
		})
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	left.Wait()
	checkAllFree(t, s)
}
