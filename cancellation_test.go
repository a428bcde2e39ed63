package stint_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stintgo/stint"
)

// registry is a context of a kind that package context does not know. It counts the
// functions that are to be called at its end, and can block their registration.
type registry struct {
	context.Context //nolint:containedctx // a registry is a context

	done chan struct{}
	gate chan struct{} // AfterFunc waits until it is closed; nil is open
	mu   sync.Mutex
	fns  map[int]func()
	made int
}

func newRegistry(parent context.Context) *registry {
	return &registry{Context: parent, done: make(chan struct{}), fns: map[int]func(){}}
}

func (r *registry) Done() <-chan struct{} { return r.done }

// AfterFunc is what context.AfterFunc calls.
func (r *registry) AfterFunc(fn func()) (stop func() bool) {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	id := r.made
	r.fns[id] = fn
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, ok := r.fns[id]
		delete(r.fns, id)
		return ok
	}
}

func (r *registry) want(t *testing.T, n int, when string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fns) != n {
		t.Errorf("%s: registered %d times with the context, want %d", when, len(r.fns), n)
	}
}

func TestA6_OneRegistrationServesAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		r := newRegistry(t.Context())
		for range 100 {
			stint.Go(r, s, nothing)
		}
		r.want(t, 1, "100 jobs")
		other := stint.Go(t.Context(), s, nothing)
		r.want(t, 1, "another context is used")
		permit.Release()
		_, _ = other.Wait(context.Background())
		r.want(t, 0, "nothing of it is left")
		wantAllFree(t, s)
	})
}

// Two jobs of one context are queued, one after the other, after the watch of that context
// has ended. Each arms the watch anew, and neither gets to it before both are under way.
func TestA6_WatchThatIsArmedTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 1, stint.Block)
		r := newRegistry(t.Context())
		first, second := submit(r, s, never(t)), submit(r, s, nothing)
		last := submit(t.Context(), s, nothing) // whose context is watched instead
		r.want(t, 0, "its jobs wait for room, and another context is used")

		r.gate = make(chan struct{})
		for range 2 { // the job that is queued, then the first of the context
			s.Clear()
			synctest.Wait()
		}
		close(r.gate)
		r.want(t, 1, "the second is queued")
		if first.blocked() || second.blocked() || !last.blocked() {
			t.Fatal("the first two were not let in one after the other")
		}
		releaseSlot(permit)
		r.want(t, 0, "nothing of it is left")
		if err := second.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		if err := last.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		wantAllFree(t, s)
	})
}

// collected reports whether the garbage collector frees what p points to. It tries
// repeatedly, as goroutines that are about to end may still refer to it.
func collected[T any](p weak.Pointer[T]) bool {
	for range 100 {
		runtime.GC()
		if p.Value() == nil {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// owned returns a scheduler and an object to which only the scheduler refers.
//
//go:noinline
func owned(limit int) (s stint.Scheduler, object weak.Pointer[[64]int]) {
	shares := new([64]int)
	s = stint.New(limit, stint.Config{Share: func(key string) int { return shares[len(key)] }})
	return s, weak.Make(shares)
}

// A context that lives on, as that of a whole program does, does not keep a scheduler
// from being collected, even after many jobs of both.
func TestA6_ContextKeepsNoIdleScheduler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, use := range map[string]func(s stint.Scheduler, permit *stint.Permit){
		"queued": func(s stint.Scheduler, permit *stint.Permit) {
			f := stint.Go(ctx, s, nothing)
			permit.Release()
			_, _ = f.Wait(ctx)
		},
		"posted": func(s stint.Scheduler, permit *stint.Permit) {
			g := stint.NewGroup(ctx, s)
			for range 200 {
				g.Go(func(context.Context) error { return nil })
			}
			permit.Release()
			_ = g.Wait()
		},
		"cleared": func(s stint.Scheduler, permit *stint.Permit) {
			for range 10 {
				stint.Go(ctx, s, nothing)
			}
			s.Clear()
			permit.Release()
		},
		"waiters": func(s stint.Scheduler, permit *stint.Permit) {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() { _, _ = stint.Run(ctx, s, nothing) })
			}
			permit.Release()
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			if p := usedUp(t, use); !collected(p) {
				t.Error("the scheduler is kept")
			}
			if ctx.Err() != nil {
				t.Error("the context has ended, so it proves nothing")
			}
		})
	}
}

// Nor does it keep a registration of a scheduler that has been collected.
func TestA6_ContextKeepsNoRegistrationOfACollectedScheduler(t *testing.T) {
	r := newRegistry(t.Context())
	for range 10 {
		p := usedUp(t, func(s stint.Scheduler, permit *stint.Permit) {
			f := stint.Go(r, s, nothing)
			permit.Release()
			_, _ = f.Wait(t.Context())
		})
		if !collected(p) {
			t.Fatal("the scheduler is kept")
		}
	}
	left := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.fns)
	}
	for n := 0; n < 1000 && left() > 0; n++ { // a goroutine of the runtime ends them, after a collection
		runtime.GC()
	}
	if n := left(); n > 0 || r.made != 10 {
		t.Errorf("%d of %d registrations are left", n, r.made)
	}
}

// usedUp uses a scheduler whose only slot is taken, and forgets it.
//
//go:noinline
func usedUp(t *testing.T, use func(stint.Scheduler, *stint.Permit)) weak.Pointer[[64]int] {
	t.Helper()
	s, p := owned(1)
	use(s, mustTry(t, s))
	return p
}

// A scheduler that has jobs is not collected, although the program no longer refers to
// it: the end of their context still answers the jobs.
func TestA6_ContextKeepsASchedulerWithJobs(t *testing.T) {
	for name, look := range map[string]func(stint.Scheduler) stint.Stats{
		"posted": func(stint.Scheduler) (none stint.Stats) { return none },
		"queued": stint.Scheduler.Stats, // it looks at what is posted
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var settled sync.WaitGroup
			settled.Add(100)
			p := abandon(ctx, settled.Done, look)
			for range 3 {
				runtime.GC()
			}
			cancel()
			settled.Wait()
			if !collected(p) {
				t.Error("the scheduler is kept after its last job's end")
			}
		})
	}
}

// abandon hands 100 jobs to a scheduler that starts nothing, and forgets it.
//
//go:noinline
func abandon(ctx context.Context, settled func(), look func(stint.Scheduler) stint.Stats) weak.Pointer[[64]int] {
	s, p := owned(1)
	s.Pause("the test")
	for range 100 {
		stint.Go(ctx, s, nothing).Teardown(settled)
	}
	look(s)
	return p
}
