package queue_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// Both hooks receive the outcome of a handler that returns during the shutdown before Run
// returns.
func TestC3_HooksReceiveTheLastOutcomes(t *testing.T) {
	for range 20 { // one in two went untold by chance
		synctest.Test(t, func(t *testing.T) {
			var events, dead int
			r := newRig(t, 1, queue.Config{
				OnEvent: func(ctx context.Context, e queue.Event) {
					if e.To == queue.Dead && ctx.Err() == nil {
						events++
					}
				},
				OnDead: func(ctx context.Context, _ queue.Task) {
					if ctx.Err() == nil {
						dead++
					}
				},
			})
			r.Handle("k", func(context.Context, *queue.Attempt) error {
				time.Sleep(time.Second)
				return retry.Permanent(errFault)
			})
			r.start()
			id := r.submit("k", queue.Options{})
			r.is(id, queue.Running)
			r.end()
			r.is(id, queue.Dead)
			if events != 1 || dead != 1 {
				t.Fatalf("OnEvent received %d dead letters and OnDead %d, want one each", events, dead)
			}
		})
	}
}

// sluggish is a store that answers to the outcome of a task a second late, and sends the events of
// some queues late.
type sluggish struct {
	queue.Store
	task   *queue.ID
	events map[string]time.Duration // how late, by queue
}

func (s sluggish) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	answers, err := s.Store.Settle(ctx, now, outcomes)
	if outcomes[0].ID == *s.task {
		time.Sleep(time.Second)
	}
	return answers, err
}

func (s sluggish) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	var one sync.Mutex // for one event at a time
	var late sync.WaitGroup
	defer late.Wait()
	return s.Store.Watch(ctx, begun, func(e queue.Event) {
		late.Go(func() {
			select {
			case <-time.After(time.Until(e.At.Add(s.events[e.Queue]))):
			case <-ctx.Done():
				return
			}
			one.Lock()
			defer one.Unlock()
			fn(e)
		})
	})
}

// The hooks receive the last outcomes of all queues, also if the store answers to them in another
// order than that of their events, and events of others do not keep Run from returning.
func TestC3_HooksReceiveTheLastOutcomesOfAllQueues(t *testing.T) {
	for _, late := range []map[string]time.Duration{
		nil, {"a": time.Second, "b": time.Second, "c": time.Second}, {"a": time.Second}, {"b": time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var first queue.ID
			var ended []string
			r := newRig(t, 2, queue.Config{})
			r.Queue = queue.New(sluggish{r.store, &first, late}, queue.Config{
				OnEvent: func(ctx context.Context, e queue.Event) {
					if e.To == queue.Succeeded && ctx.Err() == nil {
						ended = append(ended, e.Queue)
					}
				},
			})
			r.Handle("at once", func(context.Context, *queue.Attempt) error { return nil })
			r.Handle("soon", func(context.Context, *queue.Attempt) error { time.Sleep(time.Second / 2); return nil })
			first = r.submit("at once", queue.Options{Queue: "a"})
			r.submit("soon", queue.Options{Queue: "b"})
			r.start("a", "b")
			others, stop := context.WithCancel(t.Context())
			var submitting sync.WaitGroup
			submitting.Go(func() {
				for others.Err() == nil {
					_, err := queue.Kind[any]("k").Submit(others, r.Queue, nil, queue.Options{Queue: "c"})
					if err != nil && others.Err() == nil {
						t.Error(err)
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
			begun := time.Now()
			r.end()
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("events late by %v: Run returned after %s", late, took)
			}
			slices.Sort(ended)
			if want := []string{"a", "b"}; !slices.Equal(ended, want) {
				t.Errorf("events late by %v: the hook received the ends of tasks of %q, want %q", late, ended, want)
			}
			stop()
			submitting.Wait()
		})
	}
}

// However short a Run is, and however late the store sends events, the hooks receive its
// first outcomes.
func TestC3_HooksReceiveTheFirstOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received []queue.Trigger
		var dead []queue.ID
		r, store := newFaultyRig(t, queue.Config{
			OnEvent: func(_ context.Context, e queue.Event) { received = append(received, e.On) },
			OnDead:  func(_ context.Context, task queue.Task) { dead = append(dead, task.ID) },
		})
		store.before = func(call string) error {
			if call == "watch" {
				time.Sleep(time.Second)
			}
			return nil
		}
		done := make(chan struct{})
		r.Handle("k", func(context.Context, *queue.Attempt) error {
			close(done)
			return retry.Permanent(errFault)
		})
		id := r.submit("k", queue.Options{})
		r.start()
		<-done
		r.end()
		if want := []queue.Trigger{queue.OnClaim, queue.OnFailure}; !slices.Equal(received, want) {
			t.Errorf("OnEvent received %v, want %v", received, want)
		}
		if !slices.Equal(dead, []queue.ID{id}) {
			t.Errorf("OnDead received %v, want %s", dead, id)
		}
	})
}

// If the store sends no events, the hooks delay tasks for a short time, and the end of Run
// not at all.
func TestC3_HooksOfAStoreWithoutEvents(t *testing.T) {
	hang := func() error { time.Sleep(time.Hour); return errFault }
	for name, c := range map[string]struct {
		watch func() error
		end   func(*rig)
		after time.Duration // the task starts; never, if it is 0
	}{
		"refuses":    {watch: func() error { return errFault }, after: time.Nanosecond},
		"hangs":      {watch: hang, after: 10 * time.Second},
		"is stopped": {watch: hang, end: func(r *rig) { r.stop(errOver) }},
		"is to halt": {watch: hang, end: func(r *rig) { r.Halt() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, store := newFaultyRig(t, queue.Config{
					Lease: 10 * time.Second, Grace: time.Second, OnEvent: func(context.Context, queue.Event) {},
				})
				store.before = func(call string) error {
					if call == "watch" {
						return c.watch()
					}
					return nil
				}
				r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
				id := r.submit("k", queue.Options{})
				r.start()
				if c.end != nil {
					r.is(id, queue.Waiting)
					begun := time.Now()
					c.end(r)
					err := <-r.ended
					if took := time.Since(begun); took > 3*time.Second || err == nil {
						t.Errorf("Run returned %v after %s", err, took)
					}
				} else {
					time.Sleep(c.after)
					r.is(id, queue.Succeeded)
					r.stop(errOver)
					if err := <-r.ended; !errors.Is(err, errOver) {
						t.Errorf("Run returned %v", err)
					}
				}
				time.Sleep(2 * time.Hour) // the watch ends after all
			})
		})
	}
}

// A hook that is too slow misses dead letters. The store has them, and the Logger receives
// their number.
func TestC3_HookThatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		called := 0
		r := newRig(t, 1, queue.Config{
			Grace: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnDead: func(ctx context.Context, _ queue.Task) {
				called++
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			},
		})
		r.start()
		var tasks []queue.NewTask
		for range 100 {
			soon := queue.Options{Deadline: time.Now().Add(time.Second)}
			tasks = append(tasks, r.Prepare(queue.Spec{Kind: "k", Options: soon}))
		}
		r.accept(tasks...)
		time.Sleep(30*time.Second + time.Second/2)
		begun := time.Now()
		r.end()
		if took := time.Since(begun); took > 11*time.Second {
			t.Errorf("Run waited %s for the hook", took)
		}
		if n := len(r.dead(queue.Filter{})); n != 100 || called != 40 {
			t.Errorf("%d dead letters, %d calls, want 100 and 40", n, called)
		}
		if !strings.Contains(log.String(), "OnDead was called") || !strings.Contains(log.String(), "tasks=60") {
			t.Errorf("the log does not name the 60 others: %s", log.String())
		}
	})
}

// A hook that does not return delays Run as long as a handler may, and not at all after
// Halt; the error names it.
func TestC5_HookThatDoesNotEnd(t *testing.T) {
	for name, most := range map[string]time.Duration{"end": 31 * time.Second, "halt": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{
					Grace: 20 * time.Second, WaitDelay: 10 * time.Second,
					OnEvent: func(context.Context, queue.Event) { time.Sleep(time.Hour) },
				})
				r.start()
				r.submit("k", queue.Options{})
				synctest.Wait()
				begun := time.Now()
				if name == "halt" {
					r.Halt()
				} else {
					r.stop(errOver)
				}
				err := <-r.ended
				if took := time.Since(begun); took > most {
					t.Errorf("Run returned after %s, want %s at most", took, most)
				}
				if err == nil || !strings.Contains(err.Error(), "OnEvent true, OnDead false") {
					t.Errorf("error %v, want one that names the hook", err)
				}
				time.Sleep(2 * time.Hour) // the hook ends after all
			})
		})
	}
}

// A hook that calls runtime.Goexit, as a test's FailNow does, is called for the next event as
// well, and the log says so.
func TestC3_HookThatExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var events, dead int
		r := newRig(t, 1, queue.Config{
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			OnEvent: func(context.Context, queue.Event) { events++; runtime.Goexit() },
			OnDead:  func(context.Context, queue.Task) { dead++; runtime.Goexit() },
		})
		r.Handle("k", func(context.Context, *queue.Attempt) error { return retry.Permanent(errFault) })
		r.start()
		for range 3 {
			r.submit("k", queue.Options{})
		}
		synctest.Wait()
		r.end()
		if events != 9 || dead != 3 || !strings.Contains(log.String(), "Goexit") {
			t.Errorf("OnEvent was called %d times and OnDead %d times, want 9 and 3; the log:\n%s", events, dead, &log)
		}
	})
}
