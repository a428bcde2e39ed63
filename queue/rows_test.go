package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// order writes down the keys of tasks as they start.
type order struct {
	mu   sync.Mutex
	keys []string
}

func (o *order) note(a *queue.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, a.Key)
}

func (o *order) want(t *testing.T, keys ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.keys, keys) {
		t.Errorf("started %q, want %q", o.keys, keys)
	}
}

// A task of a kind without a handler is neither claimed nor failed: it waits, with a reason
// that names the kind, and starts when a worker handles the kind.
func TestC1_UnknownKindsAreLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		r.Handle("known", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		unknown := r.submit("unknown", queue.Options{})
		r.is(r.submit("known", queue.Options{}), queue.Succeeded) // it does not stand behind the other
		time.Sleep(time.Hour)
		if task := r.is(unknown, queue.Waiting); len(task.Steps) != 1 {
			t.Errorf("its life is %+v, want nothing since it was submitted", task.Steps)
		}
		why, err := r.Why(t.Context(), unknown)
		if err != nil || len(why) == 0 || why[0].Code != queue.CodeNoWorker || why[0].What != "unknown" {
			t.Errorf("it waits because of %+v, error %v; want that no worker knows its kind", why, err)
		}
		r.end()
		next := queue.New(r.store, queue.Config{})
		next.Handle("unknown", func(context.Context, *queue.Attempt) error { return nil })
		r.Queue, r.ended = next, make(chan error, 1)
		r.start()
		r.is(unknown, queue.Succeeded)
		r.end()
	})
}

// A retry keeps its tier, and its wait holds no slot.
func TestC2_RetriesKeepTheirTierAndHoldNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Retry: retry.Policy{Base: 10 * time.Second}})
		var o order
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			o.note(a)
			if a.Key == "fails once" && a.Failures == 0 {
				return errFault
			}
			time.Sleep(4 * time.Second)
			return nil
		})
		r.start()
		id := r.submit("k", queue.Options{Key: "fails once", Tier: stint.High})
		for _, key := range []string{"1", "2", "3", "4", "5"} {
			r.submit("k", queue.Options{Key: key})
		}
		r.is(id, queue.Scheduled)
		time.Sleep(time.Minute)
		o.want(t, "fails once", "1", "2", "3", "fails once", "4", "5") // it is due after 10 s
		if task := r.is(id, queue.Succeeded); task.Tier != stint.High || task.Failures != 1 {
			t.Errorf("tier %s with %d failures", task.Tier, task.Failures)
		}
		r.end()
	})
}

func TestC2_NegativeAttemptsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		_, err := r.Submit(t.Context(), r.Prepare(queue.Spec{Kind: "k", Options: queue.Options{MaxAttempts: -1}}))
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
	})
}

// A payload over the limit is refused with its size and the limit, and so is all
// that is submitted with it; a value that cannot be JSON as well.
func TestC3_PayloadTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		good, large := r.Prepare(queue.Spec{Kind: "k"}), r.Prepare(queue.Spec{Kind: "k", Payload: make([]byte, 2<<20)})
		_, err := r.Submit(t.Context(), good, large)
		if !errors.Is(err, queue.ErrTooLarge) || !strings.Contains(err.Error(), "2097152") {
			t.Errorf("error %v, want one that names the size", err)
		}
		if _, err := r.Get(t.Context(), good.ID); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("the other task of the call: error %v, want that it is not there", err)
		}
		_, err = queue.Kind[func()]("k").Submit(t.Context(), r.Queue, func() {}, queue.Options{})
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a function as the payload: error %v", err)
		}
	})
}

// A task starts after those that it comes after, one that is dead holds it, and
// retrying that one goes on.
func TestC12_DependenciesRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{})
		var o order
		broken := true
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			o.note(a)
			time.Sleep(time.Second)
			if a.Key == "transform" && broken {
				return retry.Permanent(errFault)
			}
			return nil
		})
		r.start()
		extract := r.Prepare(queue.Spec{Kind: "k", Options: queue.Options{Key: "extract"}})
		transform := r.Prepare(queue.Spec{Kind: "k", Options: queue.Options{Key: "transform", After: []queue.ID{extract.ID}}})
		both := []queue.ID{extract.ID, transform.ID}
		load := r.Prepare(queue.Spec{Kind: "k", Options: queue.Options{Key: "load", After: both}})
		r.accept(extract, transform, load)
		time.Sleep(time.Hour)
		r.is(transform.ID, queue.Dead)
		held := r.is(load.ID, queue.Held)
		if len(held.Holds) != 1 || held.Holds[0].What != transform.ID.String() || held.Holds[0].State != queue.Dead {
			t.Errorf("held by %+v, want by the dead one", held.Holds)
		}
		o.want(t, "extract", "transform")
		broken = false
		if n, err := r.RetryDead(t.Context(), "ann", queue.Filter{}); n != 1 || err != nil {
			t.Errorf("retried %d, error %v", n, err)
		}
		time.Sleep(time.Hour)
		o.want(t, "extract", "transform", "transform", "load")
		r.end()
	})
}

// Tasks of a group run one at a time in their order, retries and all, while other
// groups go on.
func TestC12_GroupsRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{Retry: retry.Policy{Base: time.Minute}})
		var o order
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			o.note(a)
			time.Sleep(time.Second)
			if a.Key == "a2" && a.Failures == 0 {
				return errFault
			}
			return nil
		})
		r.start()
		for _, key := range []string{"a1", "a2", "a3"} {
			r.submit("k", queue.Options{Group: "a", Key: key})
		}
		time.Sleep(10 * time.Millisecond)
		r.submit("k", queue.Options{Group: "b", Key: "b1"})
		time.Sleep(10 * time.Second)
		o.want(t, "a1", "b1", "a2") // which is tried again in a minute
		time.Sleep(time.Hour)
		o.want(t, "a1", "b1", "a2", "a2", "a3")
		r.end()
	})
}

// Reading the random source from many goroutines at once is safe, whatever it is:
// the race detector looks on.
func TestC2_RandomIsCalledByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bits := uint64(1)
		r := newRig(t, 8, queue.Config{Random: func() uint64 { bits = bits*6364136223846793005 + 1; return bits }})
		r.Handle("k", func(context.Context, *queue.Attempt) error { return errFault })
		r.start()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					r.submit("k", queue.Options{MaxAttempts: 2})
				}
			})
		}
		all.Wait()
		time.Sleep(time.Hour)
		if n := len(r.dead(queue.Filter{})); n != 160 {
			t.Errorf("%d dead letters, want 160", n)
		}
		r.end()
	})
}
