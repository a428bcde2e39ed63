package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// hung is a store whose claims do not answer, or not even end with their context.
type hung struct {
	queue.Store
	on, deaf atomic.Bool
	end      chan struct{}
	answers  string // a queue whose claims are answered
}

func (h *hung) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	switch {
	case c.Queue == h.answers:
		return h.Store.Claim(ctx, now, c)
	case h.deaf.Load():
		<-h.end
	case h.on.Load():
		<-ctx.Done()
	default:
		return h.Store.Claim(ctx, now, c)
	}
	return queue.Claimed{}, queue.ErrUnavailable
}

func newHungRig(t *testing.T, cfg queue.Config) (*rig, *hung) {
	t.Helper()
	r := newRig(t, 1, cfg)
	h := &hung{Store: r.store, end: make(chan struct{})}
	r.Queue = queue.New(h, cfg)
	r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
	r.start()
	return r, h
}

// A claim that does not answer keeps its slot for a lease, and not longer.
func TestC6_ClaimThatHangsGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, h := newHungRig(t, queue.Config{Lease: 10 * time.Second})
		h.on.Store(true)
		id := r.submit("k", queue.Options{})
		time.Sleep(5 * time.Second)
		h.on.Store(false)
		time.Sleep(7 * time.Second)
		r.is(id, queue.Succeeded)
		r.end()
	})
}

// besides is a Run of two queues on one slot. Claims of the queue silent do not answer while the
// store hangs; the queue healthy has tasks of a second for ten minutes.
type besides struct {
	*rig
	hung *hung
	done atomic.Int64 // tasks of the queue healthy
}

func newBesides(t *testing.T) *besides {
	t.Helper()
	cfg := queue.Config{Lease: 20 * time.Second}
	b := &besides{rig: newRig(t, 1, cfg)}
	b.hung = &hung{Store: b.store, answers: "healthy"}
	b.Queue = queue.New(b.hung, cfg)
	b.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
		time.Sleep(time.Second)
		if a.Queue == "healthy" {
			b.done.Add(1)
		}
		return nil
	})
	for range 600 {
		b.submit("k", queue.Options{Queue: "healthy"})
	}
	b.hung.on.Store(true)
	return b
}

// A queue whose store does not answer holds a slot during one claim, and not again until it answers.
func TestC11_SilentQueueHoldsASlotOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBesides(t)
		b.submit("k", queue.Options{Queue: "silent"})
		b.start("silent", "healthy")
		time.Sleep(2 * time.Minute)
		if n := b.done.Load(); n < 95 {
			t.Errorf("%d tasks of a second ran in two minutes beside a claim of 20 s, want about 100", n)
		}
		b.end()
	})
}

// When the store answers again, the queue that was silent takes turns with the other one.
func TestC11_SilentQueueComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBesides(t)
		var ids []queue.ID
		for range 5 {
			ids = append(ids, b.submit("k", queue.Options{Queue: "silent"}))
		}
		b.start("silent", "healthy")
		time.Sleep(2 * time.Minute)
		b.hung.on.Store(false)
		time.Sleep(21 * time.Second) // the claim under way, and the time until the next
		before := b.done.Load()
		time.Sleep(15 * time.Second)
		for _, id := range ids {
			if task := b.is(id, queue.Succeeded); task.Failures+task.Crashes != 0 {
				t.Errorf("%d failures and %d crashes of a task of the queue", task.Failures, task.Crashes)
			}
		}
		if n := b.done.Load() - before; n < 8 {
			t.Errorf("%d tasks of the other queue ran in 15 s, want them to have the other turns", n)
		}
		b.end()
	})
}

// Run ends during a claim that does not answer and has no slot as during one that has.
func TestC5_ClaimWithoutASlotHangsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBesides(t)
		b.start("silent", "healthy")
		time.Sleep(time.Minute)
		begun := time.Now()
		b.end()
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("Run returned after %s", took)
		}
	})
}

// A claim without a slot asks for one task, which is released if it gets no slot. The next claim waits for one.
func TestC6_TaskOfAClaimWithoutASlot(t *testing.T) {
	for name, stops := range map[string]bool{"no slot is free": false, "the Run stops during the claim": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, f := newFaultyRig(t, queue.Config{Lease: time.Minute})
				var down, slow atomic.Bool
				f.before = func(call string) error {
					if call == "claim" && down.Load() {
						return errFault
					}
					return nil
				}
				f.after = func(call string) {
					if call == "claim" && slow.Load() {
						time.Sleep(time.Second)
					}
				}
				r.slots = stint.New(1, stint.Config{})
				r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
				for range 200 { // claims become large
					r.submit("k", queue.Options{})
				}
				r.start()
				down.Store(true)
				time.Sleep(2500 * time.Millisecond) // a claim fails, and the next one is in half a second
				permit, err := r.slots.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				first := r.submit("k", queue.Options{})
				for range 9 {
					r.submit("k", queue.Options{})
				}
				want := func(state queue.State, number int) {
					t.Helper()
					synctest.Wait()
					if n, err := r.Count(t.Context(), queue.Filter{}); err != nil || n[state] != number {
						t.Errorf("%v, error %v; want %d %s", n, err, number, state)
					}
				}
				claims := f.claims.Load()
				down.Store(false)
				slow.Store(true)
				time.Sleep(time.Second)
				want(queue.Running, 1) // by a claim that is not answered yet
				if stops {
					r.stop(errOver)
				}
				time.Sleep(time.Minute)
				want(queue.Waiting, 10)
				if task := r.is(first, queue.Waiting); task.Failures+task.Crashes != 0 {
					t.Errorf("%d failures and %d crashes of a task that has not started", task.Failures, task.Crashes)
				}
				if n := f.claims.Load() - claims; n != 1 {
					t.Errorf("%d claims without a slot, want none after one that has been answered", n)
				}
				permit.Release()
				if !stops {
					time.Sleep(time.Minute)
					want(queue.Succeeded, 210)
				}
				r.end()
			})
		})
	}
}

// A claim that does not answer holds the end of Run up for a short time, and the
// error says what it was if it does not even end with its context.
func TestC5_ClaimThatHangsAtTheEnd(t *testing.T) {
	for name, deaf := range map[string]bool{"ends with its context": false, "does not end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, h := newHungRig(t, queue.Config{Grace: 20 * time.Second})
				h.on.Store(true)
				h.deaf.Store(deaf)
				r.submit("k", queue.Options{})
				time.Sleep(time.Second)
				begun := time.Now()
				if !deaf {
					r.end()
					if took := time.Since(begun); took > 3*time.Second {
						t.Errorf("nothing ran, and Run returned after %s", took)
					}
					return
				}
				r.stop(errOver)
				if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "claim") {
					t.Errorf("error %v, want one about a claim", err)
				}
				close(h.end)
			})
		})
	}
}

// A store that says that there is more to do whenever a claim fails is not asked
// over and over.
func TestC6_ClaimsThatFailAreNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := newFaultyRig(t, queue.Config{})
		var claims atomic.Int64
		f.before = func(call string) error {
			if call != "claim" {
				return nil
			}
			claims.Add(1)
			time.Sleep(time.Millisecond)
			r.submit("other", queue.Options{}) // rings the bell
			return errFault
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		r.submit("k", queue.Options{})
		time.Sleep(10*time.Second + time.Millisecond/2)
		if n := claims.Load(); n < 9 || n > 15 {
			t.Errorf("%d claims in ten seconds, want about one at each poll", n)
		}
		r.end()
	})
}

// stuck is where a Logger writes that waits for something.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) { <-s; return len(p), nil }

// A Logger that blocks on a failed claim does not keep Run from returning.
func TestC5_LoggerThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(stuck)
		r, f := newFaultyRig(t, queue.Config{Logger: slog.New(slog.NewTextHandler(release, nil))})
		f.before = func(call string) error {
			if call == "claim" {
				return errFault
			}
			return nil
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		begun := time.Now()
		r.Halt()
		if err := <-r.ended; !errors.Is(err, queue.ErrStopping) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("Run returned after %s", took)
		}
		close(release)
	})
}

// After a rush the goroutines go, also if the queue is never quiet.
func TestC1_RunnersGoThoughTasksCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 500, queue.Config{})
		r.slots = stint.New(500, stint.Config{})
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			if a.Key == "slow" {
				time.Sleep(time.Second)
			}
			return nil
		})
		r.start()
		before := runtime.NumGoroutine()
		for range 500 {
			r.submit("k", queue.Options{Key: "slow"})
		}
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			r.submit("k", queue.Options{})
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 50 {
			t.Errorf("%d goroutines more than before the rush", n)
		}
		r.end()
	})
}

// A runner that loses its slot by a panic in the queue's own code, as of Config.Random, does
// not end the turn of the runner that seeks meanwhile.
func TestC1_PanicLeavesTheSeekingRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad atomic.Bool
		r := newRig(t, 1, queue.Config{Poll: time.Hour, Random: func() uint64 {
			if bad.Load() {
				panic("no bits")
			}
			return 1
		}})
		r.Handle("bad", func(context.Context, *queue.Attempt) error { bad.Store(true); return errOver })
		r.Handle("good", func(context.Context, *queue.Attempt) error { return nil })
		r.submit("bad", queue.Options{})
		first, second := r.submit("good", queue.Options{}), r.submit("good", queue.Options{})
		r.start()
		time.Sleep(time.Second)
		r.is(first, queue.Succeeded)
		r.is(second, queue.Succeeded)
		r.end()
	})
}
