package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// A store that takes no outcomes holds the end of Run up for one lease in all,
// and not for one each time; nor does one that does not answer at all.
func TestC5_OutcomesThatAreNotTaken(t *testing.T) {
	for name, hang := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = time.Minute
				r, store := newFaultyRig(t, queue.Config{Lease: lease})
				var down atomic.Bool
				store.settle = func(ctx context.Context) error {
					if !down.Load() {
						return nil
					}
					if hang {
						<-ctx.Done()
					}
					return queue.ErrUnavailable
				}
				r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error {
					time.Sleep(time.Second)
					return nil
				})
				for range 40 {
					r.submit("k", queue.Options{})
				}
				r.start()
				time.Sleep(2500 * time.Millisecond)
				down.Store(true)
				time.Sleep(2 * time.Second)
				begun := time.Now()
				r.end()
				if took := time.Since(begun); took > lease+5*time.Second {
					t.Errorf("Run returned after %s, want within about a lease", took)
				}
				n, err := r.Count(t.Context(), queue.Filter{})
				if err != nil || n[queue.Succeeded] != 8 {
					t.Errorf("%v, error %v; want the 8 of before to have succeeded", n, err)
				}
			})
		})
	}
}

// A handler that does not return does not cost those that have returned their outcomes: they are
// settled when Run returns, and the store may be closed.
func TestC5_OutcomesBesideAHandlerThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Grace: time.Minute, WaitDelay: time.Second})
		store.settle = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		release := make(chan struct{})
		r.Handle("obeys", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return ctx.Err() })
		r.Handle("stubborn", func(context.Context, *queue.Attempt) error { <-release; return nil })
		r.start()
		obeys, stubborn := r.submit("obeys", queue.Options{}), r.submit("stubborn", queue.Options{})
		r.is(obeys, queue.Running)
		r.stop(errOver)
		if err := <-r.ended; err == nil || !strings.Contains(err.Error(), stubborn.String()) {
			t.Errorf("Run returned %v", err)
		}
		if task, err := r.Get(t.Context(), obeys); err != nil || task.State != queue.Waiting {
			t.Errorf("when Run returns, the task is %s, %v", task.State, err)
		}
		close(release)
		time.Sleep(time.Minute)
		r.is(stubborn, queue.Succeeded)
	})
}

// However long a lease is, the last outcomes have its time to be settled.
func TestC5_OutcomesOfAVeryLongLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{Lease: math.MaxInt64})
		calls := 0
		store.settle = func(ctx context.Context) error {
			if calls++; calls == 1 { // before the session knows that it ends
				return errFault
			}
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { time.Sleep(time.Second); return nil })
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		r.end()
		r.is(id, queue.Succeeded)
	})
}

// A store whose clock is behind says that there is more to do at times that have
// come here. It is asked again after a while, and not over and over.
func TestC2_StoreWithAClockThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{})
		store.behind = time.Second
		rate := queue.Settings{Rate: queue.Rate{PerSecond: 1}}
		if err := r.Configure(t.Context(), "default", rate); err != nil {
			t.Fatal(err)
		}
		var done atomic.Int32
		r.Handle("k", func(context.Context, *queue.Attempt) error { done.Add(1); return nil })
		for range 5 {
			r.submit("k", queue.Options{RunAt: time.Now().Add(time.Second)})
		}
		r.start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := done.Load(); n != 5 {
			t.Errorf("%d have run, want 5", n)
		}
		if claims, maintains := store.claims.Load(), store.maintains.Load(); claims > 10_000 || maintains > 10_000 {
			t.Errorf("%d claims and %d calls of Maintain in ten seconds: it spins", claims, maintains)
		}
		r.end()
	})
}

// After Halt Run returns at once. It releases the tasks of handlers that return, and names
// those that do not; the tasks of both run again later.
func TestC5_HaltReturnsAtOnce(t *testing.T) {
	for name, draining := range map[string]bool{"while it runs": false, "while it drains": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, queue.Config{Lease: time.Minute})
				release := make(chan struct{})
				r.Handle("obeys", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return ctx.Err() })
				r.Handle("stubborn", func(context.Context, *queue.Attempt) error { <-release; return nil })
				r.start()
				obeys, stubborn := r.submit("obeys", queue.Options{}), r.submit("stubborn", queue.Options{})
				r.is(stubborn, queue.Running)
				why := queue.ErrStopping
				if draining {
					r.stop(errOver)
					time.Sleep(5 * time.Second)
					why = errOver
				}
				begun := time.Now()
				r.Halt()
				r.Halt()
				err := <-r.ended
				if took := time.Since(begun); took > time.Second {
					t.Errorf("Run returned after %s", took)
				}
				if !errors.Is(err, why) || !strings.Contains(err.Error(), stubborn.String()+" (stubborn)") ||
					strings.Contains(err.Error(), obeys.String()) {
					t.Errorf("error %v, want one that names the task that did not end", err)
				}
				if task := r.is(obeys, queue.Waiting); task.Failures+task.Crashes != 0 {
					t.Errorf("%d failures and %d crashes of the one that obeyed", task.Failures, task.Crashes)
				}
				if err := r.Queue.Run(t.Context(), r.slots); !errors.Is(err, queue.ErrStopping) {
					t.Errorf("a Run after that returned %v", err)
				}
				close(release)
				r.is(stubborn, queue.Succeeded) // in time, as it happens
			})
		})
	}
}

// If the store accepts no outcomes at a Halt, the error of Run says so.
func TestC5_HaltWhileOutcomesAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newFaultyRig(t, queue.Config{})
		store.settle = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		r.stop(errOver)
		synctest.Wait()
		r.Halt()
		if err := <-r.ended; !errors.Is(err, errOver) || !strings.Contains(err.Error(), "outcomes") {
			t.Errorf("error %v, want one about outcomes", err)
		}
		time.Sleep(time.Minute) // the settler gives up
	})
}

// A handler that takes long to end after its context has keeps its lease for as
// long as Run waits for it.
func TestC5_LeasesLastWhileRunWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Lease: 2 * time.Second, Grace: 10 * time.Second})
		r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error {
			<-ctx.Done()
			time.Sleep(8 * time.Second) // to clean up
			return nil
		})
		r.start()
		id := r.submit("k", queue.Options{})
		r.is(id, queue.Running)
		go func() { // another process ends leases that are not extended
			time.Sleep(15 * time.Second)
			if _, err := r.store.Maintain(t.Context(), time.Now(), 0); err != nil {
				t.Error(err)
			}
		}()
		r.end()
		if task := r.is(id, queue.Succeeded); task.Crashes != 0 {
			t.Errorf("%d leases were lost", task.Crashes)
		}
	})
}

// A Run that is over before it has begun claims nothing, whichever way it was ended.
func TestC5_OverBeforeItBegins(t *testing.T) {
	for name, end := range map[string]func(*rig, context.CancelFunc){
		"its context": func(_ *rig, stop context.CancelFunc) { stop() },
		"Halt":        func(r *rig, _ context.CancelFunc) { r.Halt() },
	} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				r, store := newFaultyRig(t, queue.Config{})
				r.Handle("k", func(context.Context, *queue.Attempt) error { return nil })
				r.submit("k", queue.Options{})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				end(r, stop)
				if err := r.Queue.Run(ctx, r.slots); err == nil {
					t.Error("Run returned nil")
				}
				if n := store.claims.Load(); n != 0 {
					t.Fatalf("%s was over, and there were %d claims", name, n)
				}
			})
		}
	}
}

// One of two calls of Run of a Queue is woken for a change. If that call ends, the other
// one handles the change in time, even if the first was calling the store just then.
func TestC5_WakeUpsOfTwoRuns(t *testing.T) {
	const later = 30 * time.Minute
	delayed := func(r *rig, by time.Duration) error {
		_, err := queue.Kind[int]("k").Submit(r.Context(), r.Queue, 0, queue.Options{RunAt: time.Now().Add(by)})
		return err
	}
	for name, plan := range map[string]func(r *rig, hang func()) error{
		"delayed": func(r *rig, _ func()) error { return delayed(r, later) },
		"schedule": func(r *rig, _ func()) error {
			at := time.Now().Add(later).UTC()
			cron := fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
			return r.Schedule(r.Context(), queue.Schedule{Name: "s", Cron: cron, Zone: "UTC", Task: queue.Spec{Kind: "k"}})
		},
		"while it asks": func(r *rig, hang func()) error {
			var errs []error
			for _, by := range []time.Duration{later, later * 3 / 2, later / 3} { // the middle one wakes the other Run
				errs = append(errs, delayed(r, by))
				synctest.Wait()
			}
			hang()
			return errors.Join(errs...)
		},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " and the first ends: ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { eitherRunEnds(t, later, first, plan) })
			})
		}
	}
}

// eitherRunEnds ends the first or the second of two calls of Run between the order that makes
// a task due later and the time at which it is due.
func eitherRunEnds(t *testing.T, later time.Duration, first bool, plan func(r *rig, hang func()) error) {
	t.Helper()
	r, store := newFaultyRig(t, queue.Config{Poll: time.Hour})
	var hangs atomic.Bool
	goOn := make(chan struct{})
	store.maintain = func(ctx context.Context) error {
		if hangs.Load() {
			select {
			case <-goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	var ran time.Time
	queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error {
		ran = time.Now()
		return nil
	})
	r.start()
	ends := r.stop
	r.start()
	if !first {
		r.stop, ends = ends, r.stop
	}
	time.Sleep(time.Minute)
	want := time.Now().Add(later)
	if err := plan(r, func() { hangs.Store(true) }); err != nil {
		t.Fatal(err)
	}
	time.Sleep(later / 2)
	ends(errOver)
	if err := <-r.ended; !errors.Is(err, errOver) {
		t.Errorf("Run returned %v, want %v", err, errOver)
	}
	hangs.Store(false)
	close(goOn)
	time.Sleep(later / 2)
	synctest.Wait()
	if !ran.Equal(want) {
		t.Errorf("the task ran at %v, want %v", ran, want)
	}
	r.end()
}

// A store that has been closed cannot be opened again, so Run does not wait for it.
func TestC5_RunEndsWithItsStore(t *testing.T) {
	for name, busy := range map[string]bool{"idle": false, "with a running task": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, queue.Config{Grace: time.Minute})
				r.Handle("k", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return ctx.Err() })
				r.start()
				if busy {
					r.is(r.submit("k", queue.Options{}), queue.Running)
				}
				if err := r.store.Close(); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-r.ended:
					if !errors.Is(err, queue.ErrClosed) {
						t.Errorf("Run returned %v, want %v", err, queue.ErrClosed)
					}
				case <-time.After(2 * time.Minute):
					t.Error("Run continues on a closed store")
				}
			})
		})
	}
}
