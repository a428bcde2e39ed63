package stint_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// sleeper is slots in which a goroutine that waits sleeps itself. It writes down what it is
// called for.
type sleeper struct {
	*slotstest.Fake

	mu    sync.Mutex
	calls []string
	rouse chan struct{}
	brief bool // Sleep returns at once
	shut  bool // there is no slot
}

func newSleeper(pool *slotstest.Pool) *sleeper {
	return &sleeper{Fake: pool.Join("a"), rouse: make(chan struct{}, 1)}
}

func (s *sleeper) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *sleeper) Expect() { s.note("expect") }

func (s *sleeper) Want(tier stint.Priority, waiting int) {
	s.note("want")
	s.Fake.Want(tier, waiting)
}

func (s *sleeper) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return 0, stint.ErrNoSlot
	}
	return s.Fake.TryAcquire(tier)
}

// open lets the slots be taken, without a call of notify.
func (s *sleeper) open(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = !open
}

func (s *sleeper) Sleep(ready func() bool) {
	s.note("sleep")
	for !ready() && !s.brief {
		<-s.rouse
	}
	s.note("awake")
}

func (s *sleeper) Rouse() {
	select {
	case s.rouse <- struct{}{}:
	default:
	}
}

// sleepers returns a scheduler of two slots, of which others have all.
func sleepers() (s stint.Scheduler, slots *sleeper, pool *slotstest.Pool) {
	pool = slotstest.NewPool(0)
	slots = newSleeper(pool)
	return stint.New(2, stint.Config{Slots: slots}), slots, pool
}

// check checks what the slots have been called for since the last time.
func (s *sleeper) check(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.calls, want) {
		t.Errorf("the slots were called for %q, want %q", s.calls, want)
	}
	s.calls = nil
}

// A goroutine that waits alone sleeps in the slots, until it is served, refused, or its
// context ends.
func TestSlots_OneThatWaitsAloneSleepsInThem(t *testing.T) {
	enough := errors.New("enough")
	type scene struct {
		scheduler stint.Scheduler
		pool      *slotstest.Pool
		cancel    context.CancelCauseFunc
	}
	for name, end := range map[string]func(scene) error{
		"served":   func(s scene) error { s.pool.Resize(1); return nil },
		"canceled": func(s scene) error { s.cancel(enough); return enough },
		"cleared":  func(s scene) error { s.scheduler.Clear(); return stint.ErrCleared },
		"broken":   func(s scene) error { s.pool.Break(enough); return enough },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, slots, pool := sleepers()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				for range 4 { // with one context, which is watched after a while
					acquired := make(chan error, 1)
					var permit stint.Permit
					go func() {
						var err error
						permit, err = s.Acquire(ctx)
						acquired <- err
					}()
					slots.check(t, "expect", "want", "sleep")
					if want, err := end(scene{s, pool, cancel}), <-acquired; !errors.Is(err, want) {
						t.Errorf("the wait ended with %v, want %v", err, want)
					}
					slots.check(t, "want", "awake")
					if name == "canceled" {
						break
					}
					if name == "served" {
						pool.Resize(0)
						permit.Release()
					}
					pool.Break(nil)
				}
				wantAtRest(t, s, slots.Fake)
			})
		})
	}
}

// A goroutine that wakes in the slots takes one for itself, without being notified, unless
// another entry goes first.
func TestSlots_OneThatSleepsInThemClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, slots, pool := sleepers()
		pool.Resize(1)
		slots.check(t)
		for range 4 { // with one context, which is watched after a while
			slots.open(false)
			first := claimSlot(t.Context(), s)
			slots.check(t, "expect", "want", "sleep")
			slots.open(true)
			slots.Rouse()
			slots.check(t, "want", "awake")
			releaseSlot(&first.permit)
		}

		slots.open(false)
		first := claimSlot(t.Context(), s)
		high := claimSlot(t.Context(), s.At(stint.High))
		slots.check(t, "expect", "want", "sleep", "want")
		slots.open(true)
		slots.Rouse()
		slots.check(t, "want") // the goroutine that sleeps has started the other
		releaseSlot(&high.permit)
		slots.check(t, "want", "awake")
		releaseSlot(&first.permit)
		wantAtRest(t, s, slots.Fake)
	})
}

// Only an entry that no release of its own scheduler can serve sleeps in the slots. All
// others wait as they do for slots without sleep.
func TestSlots_OneThatDoesNotWaitAloneIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, slots, pool := sleepers()
		pool.Resize(1)
		permit := mustTry(t, s)
		second := claimSlot(t.Context(), s)
		slots.check(t, "want") // as one runs here
		releaseSlot(permit)
		slots.check(t, "want")
		pool.Resize(0)
		releaseSlot(&second.permit)
		slots.check(t)

		first := claimSlot(t.Context(), s)
		slots.check(t, "expect", "want", "sleep")
		high := claimSlot(t.Context(), s.At(stint.High))
		slots.check(t, "want") // as one waits here
		pool.Resize(1)
		slots.check(t, "want") // the second, which is not asleep in them
		releaseSlot(&high.permit)
		slots.check(t, "want", "awake")
		releaseSlot(&first.permit)

		slots.brief = true // what has returned is woken all the same
		pool.Resize(0)
		last := claimSlot(t.Context(), s)
		slots.check(t, "expect", "want", "sleep", "awake")
		pool.Resize(1)
		slots.check(t, "want")
		releaseSlot(&last.permit)
		wantAtRest(t, s, slots.Fake)
	})
}
