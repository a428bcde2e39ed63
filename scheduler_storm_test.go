package stint_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
)

// storm is goroutines that use two schedulers at once. Calls are nested in one order, the second
// within the first; waits go both ways.
type storm struct {
	t       *testing.T
	a, b    stint.Scheduler
	mu      sync.Mutex
	futures []*stint.Future[int]
}

// stormer is one goroutine of a storm, or what it has called.
type stormer struct {
	*storm

	rnd *rand.Rand
}

// child is a stormer for another goroutine.
func (x stormer) child() stormer {
	return stormer{x.storm, rand.New(rand.NewPCG(x.rnd.Uint64(), 0))}
}

// view is a scheduler with a random tier, key and weight.
func (x stormer) view(s stint.Scheduler) stint.Scheduler {
	if x.rnd.IntN(2) == 0 {
		s = s.At(stint.Lowest + stint.Priority(x.rnd.IntN(stint.Tiers)))
	}
	return s.Key([]string{"", "", "", "a", "b"}[x.rnd.IntN(5)]).Weight(1 + x.rnd.IntN(5)/4)
}

// either is one of the two.
func (x stormer) either() stint.Scheduler {
	if x.rnd.IntN(2) == 0 {
		return x.view(x.a)
	}
	return x.view(x.b)
}

func (x stormer) note(f *stint.Future[int]) *stint.Future[int] {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.futures = append(x.futures, f)
	return f
}

// leaf is a function that waits for nothing: it ends in one of several ways. own says that it
// runs in a goroutine of its own, which it may end.
func (x stormer) leaf(own bool) func(context.Context) (int, error) {
	y := x.child()
	return func(ctx context.Context) (int, error) {
		switch n := y.rnd.IntN(40); {
		case n == 0:
			panic(errAsked)
		case n == 1 && own:
			runtime.Goexit()
		case n == 2:
			return 0, errAsked
		case n < 10:
			runtime.Gosched()
		}
		return 1, context.Cause(ctx)
	}
}

// waiter is a function that waits, in one way, for others on either scheduler.
func (x stormer) waiter() func(context.Context) (int, error) {
	y := x.child()
	return func(ctx context.Context) (int, error) { return 1, y.wait(ctx) }
}

// submit is Go of a function that may itself wait.
func (x stormer) submit(ctx context.Context, deep int) *stint.Future[int] {
	fn := x.leaf(true)
	if deep > 0 && x.rnd.IntN(3) == 0 {
		fn = x.waiter()
	}
	return x.note(stint.Go(ctx, x.either(), fn))
}

// wait waits for work on either scheduler.
func (x stormer) wait(ctx context.Context) error {
	switch x.rnd.IntN(7) {
	case 0, 1:
		f := x.submit(ctx, 0)
		if x.rnd.IntN(3) == 0 {
			go f.Cancel(errAsked)
		}
		_, err := f.Wait(ctx)
		return err
	case 2:
		f := x.submit(ctx, 0)
		for range 2 {
			fn := x.leaf(true)
			next := func(ctx context.Context, _ int) (int, error) { return fn(ctx) }
			f = x.note(stint.Then(ctx, x.either(), f, next))
		}
		if x.rnd.IntN(4) == 0 {
			go f.Cancel(errAsked)
		}
		_, err := f.Wait(ctx)
		return err
	case 3, 4:
		g := stint.NewGroup(ctx, x.either())
		for range 1 + x.rnd.IntN(4) {
			fn := x.leaf(true)
			g.Go(func(ctx context.Context) error { _, err := fn(ctx); return err })
		}
		if x.rnd.IntN(4) == 0 {
			go g.Cancel(errAsked)
		}
		return g.Wait()
	case 5:
		inputs := make([]func(context.Context) (int, error), 1+x.rnd.IntN(4))
		for i := range inputs {
			inputs[i] = x.leaf(false)
		}
		call := func(ctx context.Context, fn func(context.Context) (int, error)) (int, error) { return fn(ctx) }
		each := stint.Map[func(context.Context) (int, error), int]
		if x.rnd.IntN(2) == 0 {
			each = stint.MapUnordered[func(context.Context) (int, error), int]
		}
		for _, err := range each(ctx, x.either(), slices.Values(inputs), call) {
			if err != nil {
				return err
			}
		}
		return nil
	default: // several goroutines of one function
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			y := x.child()
			wg.Go(func() { _, errs[i] = y.submit(ctx, 0).Wait(ctx) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

// act does one thing, which may be many calls deep.
func (x stormer) act(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if x.rnd.IntN(6) == 0 {
		go cancel(errAsked)
	}
	switch x.rnd.IntN(4) {
	case 0:
		return x.wait(ctx)
	case 1:
		_, err := x.submit(ctx, 1).Wait(ctx)
		return err
	case 2:
		_, err := stint.Run(ctx, x.view(x.b), func(ctx context.Context) (int, error) {
			if err := x.wait(ctx); err != nil {
				return 0, err
			}
			return stint.Run(ctx, x.view(x.b), x.leaf(false))
		})
		return err
	default:
		_, err := stint.Run(ctx, x.view(x.a), func(ctx context.Context) (int, error) {
			value, err := stint.Run(ctx, x.view(x.b), func(ctx context.Context) (int, error) {
				return 1, x.wait(ctx)
			})
			if x.rnd.IntN(2) == 0 {
				err = errors.Join(err, x.wait(ctx))
			}
			return value, err
		})
		return err
	}
}

// expected reports whether work in a storm may end so.
func expected(err error) bool {
	for _, target := range []error{
		nil, errAsked, context.Canceled, stint.ErrGoexit, stint.ErrCleared, stint.ErrTooHeavy,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// change changes what may be changed of a scheduler, which always has a slot.
func change(s stint.Scheduler, rnd *rand.Rand) {
	switch rnd.IntN(6) {
	case 0, 1:
		s.Resize(1 + rnd.IntN(3))
	case 2:
		s.Pause("the test")
		runtime.Gosched()
		s.Resume()
	case 3:
		s.SetPerKey(rnd.IntN(3))
	case 4:
		s.SetCaps(stint.Caps{Lowest: 1 + rnd.IntN(2), Low: 2 + rnd.IntN(2)})
	default:
		if rnd.IntN(8) == 0 {
			s.Clear()
		}
		runtime.Gosched()
	}
}

// ends fails the test with all stacks if what done stands for does not come in a minute.
func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s: no end after a minute:\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}

// Everything on two schedulers at once, while their limits change: at the end each future has an
// outcome, and each slot is free.
func TestStress_TwoSchedulers(t *testing.T) {
	noLeaks(t)
	const rounds, actors, acts = 6, 12, 60
	seed := seeded.Seed(t)
	for round := range uint64(rounds) {
		st := &storm{t: t, a: stint.New(1, stint.Config{PerKey: 2}), b: stint.New(1, stint.Config{PerKey: 1, Holders: true})}
		stop := make(chan struct{})
		var changer, all sync.WaitGroup
		changer.Go(func() {
			rnd := rand.New(rand.NewPCG(seed+round, 1<<32))
			for {
				select {
				case <-stop:
					return
				default:
					change(st.a, rnd)
					change(st.b, rnd)
				}
			}
		})
		for i := range uint64(actors) {
			all.Go(func() {
				x := stormer{st, rand.New(rand.NewPCG(seed+round, i))}
				for range acts {
					if err := x.act(t.Context()); !expected(err) {
						t.Errorf("error is %v", err)
					}
				}
			})
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			all.Wait()
			for _, f := range st.futures {
				<-f.Done()
			}
		}()
		ends(t, "the storm", over)
		close(stop)
		changer.Wait()
		for _, s := range []stint.Scheduler{st.a, st.b} {
			s.Resize(2)
			s.SetCaps(stint.Caps{})
			for s.Stats().Running > 0 { // an outcome is published when the slot has been released, but see Goexit
				runtime.Gosched()
			}
			checkAllFree(t, s)
		}
		t.Logf("round %d: %d futures", round, len(st.futures))
	}
}
