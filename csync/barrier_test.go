package csync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
	"github.com/stintgo/stint/internal/seeded"
)

func ExampleBarrier() {
	parts := []int{1, 2, 3}
	total := 0
	round := csync.NewBarrier(len(parts), func() { // between the rounds, alone
		total = 0
		for _, n := range parts {
			total += n
		}
		fmt.Println("total", total)
	})
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			for range 3 {
				parts[i] *= 2
				if _, err := round.Wait(context.Background()); err != nil {
					return // another party has left
				}
			}
		})
	}
	wg.Wait()
	// Output:
	// total 12
	// total 24
	// total 48
}

// party is one call of Wait.
type party struct {
	cancel context.CancelCauseFunc
	done   bool // read only when nothing moves
	place  int
	err    error
}

func arrive(ctx context.Context, b *csync.Barrier) *party {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &party{cancel: cancel}
	go func() {
		p.place, p.err = b.Wait(ctx)
		p.done = true
	}()
	return p
}

// barrierTest drives a barrier and a model of it: the waiting parties, in order, and
// whether it is broken.
type barrierTest struct {
	t       *testing.T
	r       *rand.Rand
	barrier *csync.Barrier
	parties int
	acted   int // what the action counts

	waiting []*party
	broken  bool
	cycles  int
}

func TestD4_BarrierModel(t *testing.T) {
	r := seeded.Rand(t)
	for _, parties := range []int{1, 2, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			bt := &barrierTest{t: t, r: r, parties: parties}
			bt.barrier = csync.NewBarrier(parties, func() { bt.acted++ })
			for range 5_000 {
				bt.step()
				if got := bt.barrier.Waiting(); got != len(bt.waiting) || bt.acted != bt.cycles {
					t.Fatalf("%d wait and %d cycles, want %d and %d", got, bt.acted, len(bt.waiting), bt.cycles)
				}
			}
			bt.barrier.Reset()
		})
	}
}

func (bt *barrierTest) step() {
	switch p := bt.r.IntN(100); {
	case p < 80:
		bt.arrive()
	case p < 85 && len(bt.waiting) > 0:
		bt.leave()
	case p < 87:
		bt.breakIt()
	case p < 89:
		bt.arriveEnded()
	case p < 95:
		bt.reset()
	}
}

func (bt *barrierTest) arrive() {
	bt.waiting = append(bt.waiting, arrive(bt.t.Context(), bt.barrier))
	synctest.Wait()
	switch {
	case bt.broken:
		bt.over(func(p *party, _ int) bool { return p.place == 0 && errors.Is(p.err, csync.ErrBroken) })
	case len(bt.waiting) == bt.parties:
		bt.cycles++
		bt.over(func(p *party, i int) bool { return p.place == i && p.err == nil })
	default:
		for i, p := range bt.waiting {
			if p.done {
				bt.t.Fatalf("%d of %d: returned %d, %v", i, bt.parties, p.place, p.err)
			}
		}
	}
}

// over checks that all waiting parties have returned, each with the right answer.
func (bt *barrierTest) over(right func(p *party, i int) bool) {
	bt.t.Helper()
	synctest.Wait()
	for i, p := range bt.waiting {
		if !p.done || !right(p, i) {
			bt.t.Fatalf("%d of %d: returned %v: %d, %v", i, bt.parties, p.done, p.place, p.err)
		}
	}
	bt.waiting = nil
}

func othersBroken(left *party) func(*party, int) bool {
	return func(p *party, _ int) bool {
		if p == left {
			return errors.Is(p.err, errLeft)
		}
		return errors.Is(p.err, csync.ErrBroken) && !errors.Is(p.err, errLeft)
	}
}

func (bt *barrierTest) leave() {
	left := bt.waiting[bt.r.IntN(len(bt.waiting))]
	left.cancel(errLeft)
	bt.broken = true
	bt.over(othersBroken(left))
}

func (bt *barrierTest) breakIt() {
	bt.barrier.Break(errLeft)
	bt.broken = true
	bt.over(othersBroken(nil))
}

func (bt *barrierTest) arriveEnded() {
	ctx, cancel := context.WithCancelCause(bt.t.Context())
	cancel(errLeft)
	if _, err := bt.barrier.Wait(ctx); !errors.Is(err, errLeft) {
		bt.t.Fatalf("with a context that has ended: %v, want its cause", err)
	}
	bt.broken = true
	bt.over(othersBroken(nil))
}

func (bt *barrierTest) reset() {
	bt.barrier.Reset()
	bt.broken = false
	bt.over(othersBroken(nil))
}

// blockingAction returns a barrier whose action sends to running, and then waits for
// goOn.
func blockingAction(parties int) (b *csync.Barrier, running, goOn chan struct{}) {
	running, goOn = make(chan struct{}), make(chan struct{})
	return csync.NewBarrier(parties, func() {
		running <- struct{}{}
		<-goOn
	}), running, goOn
}

func TestD4_BarrierBreaksWhileTheActionRuns(t *testing.T) {
	for name, breakIt := range map[string]func(b *csync.Barrier, p *party){
		"leave": func(_ *csync.Barrier, p *party) { p.cancel(errLeft) },
		"break": func(b *csync.Barrier, _ *party) { b.Break(errLeft) },
		"reset": func(b *csync.Barrier, _ *party) { b.Reset() },
	} {
		synctest.Test(t, func(t *testing.T) {
			b, running, goOn := blockingAction(3)
			var parties []*party
			for range 3 {
				parties = append(parties, arrive(t.Context(), b))
				synctest.Wait()
			}
			<-running // in the goroutine of the third
			breakIt(b, parties[0])
			synctest.Wait()
			goOn <- struct{}{}
			synctest.Wait()
			for _, p := range parties {
				if !p.done || p.err == nil {
					t.Errorf("%s: returned %v, %v; want an error", name, p.done, p.err)
				}
			}
		})
	}
}

// TestD4_BarrierKeepsActionsApart has more callers than parties, so that the
// next cycle could be full before the action of the last has ended.
func TestD4_BarrierKeepsActionsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, running, goOn := blockingAction(2)
		var parties []*party
		for range 7 {
			parties = append(parties, arrive(t.Context(), b))
		}
		for range 3 {
			<-running
			synctest.Wait()
			if n := b.Waiting(); n != 2 {
				t.Errorf("%d wait while the action runs, want 2", n)
			}
			goOn <- struct{}{}
		}
		synctest.Wait()
		passed := 0
		for _, p := range parties {
			if p.done && p.err == nil {
				passed++
			}
		}
		if passed != 6 || b.Waiting() != 1 {
			t.Errorf("%d passed and %d wait, want 6 and 1", passed, b.Waiting())
		}
		b.Reset()
	})
}

// TestD4_BarrierEarlyCallerLeaves ends the context of one of the callers that wait
// for the action, and then resets while the action still runs.
func TestD4_BarrierEarlyCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, running, goOn := blockingAction(1)
		first := arrive(t.Context(), b)
		<-running
		leaves, stays := arrive(t.Context(), b), arrive(t.Context(), b)
		synctest.Wait()
		leaves.cancel(errLeft)
		synctest.Wait()
		if !errors.Is(leaves.err, errLeft) || !errors.Is(stays.err, csync.ErrBroken) {
			t.Errorf("the early callers got %v and %v; want the cause and ErrBroken", leaves.err, stays.err)
		}
		b.Reset()
		next := arrive(t.Context(), b)
		synctest.Wait()
		goOn <- struct{}{} // of the old action
		<-running          // the new one
		goOn <- struct{}{}
		synctest.Wait()
		if !errors.Is(first.err, csync.ErrBroken) || !next.done || next.err != nil {
			t.Errorf("before the reset %v, after it %v", first.err, next.err)
		}
	})
}

func TestD4_BarrierActionDoesNotReturn(t *testing.T) {
	for name, action := range map[string]func(){
		"panic":  func() { panic("boom") },
		"goexit": runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := csync.NewBarrier(2, action)
			first := arrive(t.Context(), b)
			synctest.Wait()
			recovered := make(chan any)
			go func() {
				defer func() { recovered <- recover() }()
				_, _ = b.Wait(t.Context())
			}()
			if got := <-recovered; (got == "boom") != (name == "panic") {
				t.Errorf("%s: recovered %v", name, got)
			}
			synctest.Wait()
			if !errors.Is(first.err, csync.ErrBroken) {
				t.Errorf("%s: the other party got %v", name, first.err)
			}
			if _, err := b.Wait(t.Context()); !errors.Is(err, csync.ErrBroken) {
				t.Errorf("%s: afterwards %v", name, err)
			}
		})
	}
}

func TestD4_BarrierNeedsParties(t *testing.T) {
	mustPanic(t, "csync: a barrier for 0 parties; use 1 or more", func() { csync.NewBarrier(0, nil) })
}

func TestD4_ZeroBarrierPanics(t *testing.T) {
	for _, b := range []*csync.Barrier{nil, {}} {
		for range 2 { // a second call finds no lock held
			for _, call := range []func(){
				func() { _, _ = b.Wait(t.Context()) }, func() { b.Break(errLeft) }, b.Reset, func() { b.Waiting() },
			} {
				mustPanic(t, "csync: zero Barrier: make one with NewBarrier", call)
			}
		}
	}
}

// TestD4_BarrierStress lets parties do rounds side by side, and looks whether any
// is ever more than one round away from another.
func TestD4_BarrierStress(t *testing.T) {
	const parties, rounds = 8, 2000
	b := csync.NewBarrier(parties, nil)
	var (
		at     [parties]int // each party writes its own between two waits
		places [parties]int // how often each place was taken, by the party at it
		wg     sync.WaitGroup
	)
	for i := range parties {
		wg.Go(func() {
			for round := range rounds {
				at[i] = round
				place, err := b.Wait(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				places[place]++
				for _, other := range at { // no party writes before its next wait
					if other != round {
						t.Errorf("party %d in round %d, another in %d", i, round, other)
					}
				}
				_, _ = b.Wait(t.Context())
			}
		})
	}
	wg.Wait()
	for place, n := range places {
		if n != rounds {
			t.Errorf("place %d was taken %d times, want %d", place, n, rounds)
		}
	}
}

// TestD4_BarrierStressAllOrNone breaks and resets barriers that parties arrive at
// in the same moment: either all of them pass or none does.
func TestD4_BarrierStressAllOrNone(t *testing.T) {
	const parties = 3
	outcomes := map[int]int{}
	for range 3000 {
		var (
			b      = csync.NewBarrier(parties, nil)
			passed atomic.Int32
			wg     sync.WaitGroup
		)
		for range parties {
			wg.Go(func() {
				switch _, err := b.Wait(t.Context()); {
				case err == nil:
					passed.Add(1)
					b.Break(errLeft) // must not reach parties of this round that return late
					b.Reset()
				case !errors.Is(err, csync.ErrBroken):
					t.Error(err)
				default:
					b.Break(errLeft) // too few parties are left to come
				}
			})
		}
		wg.Go(func() {
			runtime.Gosched()
			b.Break(errLeft)
		})
		wg.Wait()
		outcomes[int(passed.Load())]++
	}
	if outcomes[0]+outcomes[parties] != 3000 {
		t.Errorf("how many passed, how often: %v; want 0 or %d", outcomes, parties)
	}
}

func TestD4_BarrierAllocatesNothing(t *testing.T) {
	b := csync.NewBarrier(2, nil)
	stop := errors.New("stop")
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := b.Wait(t.Context()); err != nil {
				return
			}
		}
	})
	if n := testing.AllocsPerRun(1000, func() { _, _ = b.Wait(t.Context()) }); n != 0 {
		t.Errorf("%v allocs", n)
	}
	b.Break(stop)
	wg.Wait()
}

func BenchmarkBarrier(b *testing.B) {
	for _, parties := range []int{2, 8, 64} {
		b.Run(fmt.Sprint(parties), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			barrier, rounds := csync.NewBarrier(parties, nil), b.N
			b.ReportAllocs()
			var wg sync.WaitGroup
			for range parties {
				wg.Go(func() {
					for range rounds {
						_, _ = barrier.Wait(ctx)
					}
				})
			}
			wg.Wait()
		})
	}
}
