package stint_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// A drain that returns has nothing left to publish, also of what was taken out
// of the queue meanwhile.
func TestB7_DrainWaitsForRefusals(t *testing.T) {
	for name, takeOut := range map[string]func(stint.Scheduler, *stint.Future[int], context.CancelFunc){
		"end of the context": func(_ stint.Scheduler, _ *stint.Future[int], cancel context.CancelFunc) { cancel() },
		"Clear":              func(s stint.Scheduler, _ *stint.Future[int], _ context.CancelFunc) { s.Clear() },
		"Cancel":             func(_ stint.Scheduler, f *stint.Future[int], _ context.CancelFunc) { f.Cancel(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := stint.New(1, stint.Config{})
				s.Pause("the test")
				f := stint.Go(ctx, s, nothing)
				var torn atomic.Bool
				f.Teardown(func() {
					time.Sleep(time.Second)
					torn.Store(true)
				})
				drained := make(chan struct{})
				go func() {
					defer close(drained)
					if err := s.Drain(t.Context()); err != nil || !torn.Load() {
						t.Errorf("Drain: %v, teardown called: %t", err, torn.Load())
					}
				}()
				synctest.Wait()
				takeOut(s, f, cancel)
				<-drained
			})
		})
	}
}

// flakySlots grants slots until answer is set to an error.
type flakySlots struct {
	mu     sync.Mutex
	answer error
	given  stint.Grant
	notify func()
}

func (f *flakySlots) Bind(notify func(), _ func(stint.Grant, error)) { f.notify = notify }
func (f *flakySlots) Release(stint.Grant)                            {}
func (f *flakySlots) Want(stint.Priority, int)                       {}
func (f *flakySlots) Usage() stint.Usage                             { return stint.Usage{Max: 9} }

func (f *flakySlots) TryAcquire(stint.Priority) (stint.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answer != nil {
		return 0, f.answer
	}
	f.given++
	f.answer = errBroken
	return f.given, nil
}

func (f *flakySlots) set(answer error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

var errBroken = errors.New("broken")

// A job that is refused because its slots cannot be had may end the goroutine that
// delivers the error. No other job loses a slot by that.
func TestA3_GoexitOfARefusedJobCostsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := &flakySlots{answer: stint.ErrNoSlot}
		s := stint.New(4, stint.Config{Slots: slots})
		first := stint.Go(t.Context(), s, nothing)
		second := stint.Go(t.Context(), s, nothing)
		second.Teardown(runtime.Goexit)
		slots.set(nil)
		go slots.notify()
		if _, err := first.Wait(t.Context()); err != nil {
			t.Errorf("the job that has a slot: %v", err)
		}
		if _, err := second.Wait(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("the job that has none: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
	})
}

// The error of a weight that can never run says what to do about it.
func TestB4_TooHeavySaysWhatToDo(t *testing.T) {
	shared := stint.New(5, stint.Config{Slots: slotstest.NewPool(5).Join("a")})
	for _, c := range []struct {
		s    stint.Scheduler
		want string
	}{
		{stint.New(2, stint.Config{}), "weight 3, limit 2; ask for less with Weight, or raise the limit with Resize"},
		{shared, "shared slots are taken one at a time; ask for 1 with Weight"},
	} {
		_, err := c.s.Weight(3).Acquire(t.Context())
		if !errors.Is(err, stint.ErrTooHeavy) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("Acquire: %v, want ErrTooHeavy and %q", err, c.want)
		}
	}
}
