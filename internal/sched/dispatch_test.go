package sched //nolint:testpackage // when a worker is on its way cannot be seen from outside

import (
	"context"
	"testing"
	"testing/synctest"
)

// A finish that starts nothing is a turn of the guard only if the caps keep everything
// from starting, not if the next job waits for a worker.
func TestB3_FinishIsNoTurnWhileAWorkerIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 2})
		plain := Ask{Weight: 1, Tier: 3}
		permits := [2]Permit{mustTake(t, e, plain), mustTake(t, e, plain)}
		job := new(nothing)
		job.Init(t.Context(), e)
		job.Go(job, plain)
		before := guardIn(t, &job.Call)
		e.waking.Store(true)
		permits[0].Release()
		if after := guardIn(t, &job.Call); after != before {
			t.Errorf("the guard's turn is in %d turns, want %d as before", after, before)
		}
		e.waking.Store(false)
		permits[1].Release()
		synctest.Wait()
		if !job.Settled() {
			t.Error("the job has not run")
		}
	})
}

func mustTake(t *testing.T, e *Engine, a Ask) Permit {
	t.Helper()
	p, err := e.Take(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// guardIn returns in how many turns the guard's turn comes for the tier of a waiting job.
func guardIn(t *testing.T, c *Call) int {
	t.Helper()
	e := c.Engine()
	e.lock()
	defer e.unlock()
	p, waits := c.waiting()
	if !waits {
		t.Fatal("the job does not wait")
	}
	return e.queue.why(p, e.gate.running()).GuardIn
}

// function is a job that calls fn.
type function struct {
	Call

	fn func(ctx context.Context)
}

func (f *function) Do(ctx context.Context) error {
	f.fn(ctx)
	return nil
}

func (*function) Forget() {}

// The end of a function whose slot is suspended is no turn: the slot came free when it
// was suspended.
func TestB3_EndWithoutASlotIsNoTurn(t *testing.T) {
	plain := Ask{Weight: 1, Tier: 3}
	enter := func(ctx context.Context, t *testing.T, e *Engine) (task *Task, exit func()) {
		t.Helper()
		task, parent, err := e.Enter(ctx, plain)
		if err != nil {
			t.Fatal(err)
		}
		return task, func() { task.Exit(parent) }
	}
	for name, start := range map[string]func(t *testing.T, e *Engine, waits, runs func(ctx context.Context)){
		"in a goroutine of its own": func(t *testing.T, e *Engine, waits, runs func(ctx context.Context)) {
			t.Helper()
			job := &function{fn: func(ctx context.Context) {
				waits(ctx)
				runs(ctx)
			}}
			job.Init(t.Context(), e)
			job.Go(job, plain)
		},
		"in that of its caller": func(t *testing.T, e *Engine, waits, runs func(ctx context.Context)) {
			t.Helper()
			task, exit := enter(t.Context(), t, e)
			waits(task)
			go func() {
				runs(task)
				exit()
			}()
		},
		"within another function that waits": func(t *testing.T, e *Engine, waits, runs func(ctx context.Context)) {
			t.Helper()
			outer, exitOuter := enter(t.Context(), t, e)
			waits(outer)
			synctest.Wait()
			inner, exit := enter(outer, t, e)
			waits(inner)
			go func() {
				runs(inner)
				exit()
				exitOuter()
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{Limit: 3, Caps: [Tiers]int{0: 1}})
				permit := mustTake(t, e, plain)
				awaited, end, ended := new(Call), make(chan struct{}), false
				awaited.InitByHand(e)
				start(t, e, func(ctx context.Context) { go awaited.Wait(ctx) }, func(context.Context) {
					<-end
					ended = true
				})
				synctest.Wait()
				low := new(nothing)
				low.Init(t.Context(), e)
				low.Go(low, Ask{Weight: 1})
				before := guardIn(t, &low.Call)
				close(end)
				synctest.Wait()
				if after := guardIn(t, &low.Call); after != before || !ended {
					t.Errorf("the guard's turn is in %d turns, want %d as before", after, before)
				}
				awaited.Claim()
				awaited.Settle(nil)
				permit.Release()
				synctest.Wait()
				if !low.Settled() {
					t.Error("the job of the lowest tier has not run")
				}
			})
		})
	}
}

// A goroutine with a key starts at once when it is next before a heavy one without a key
// that lacks slots.
func TestA5_KeyThatIsNextBeforeAHeavyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 2})
		plain := Ask{Weight: 1, Tier: 3}
		var permits []*Permit
		take := func(ctx context.Context, a Ask) {
			go func() {
				if p, err := e.Take(ctx, a); err == nil {
					permits = append(permits, &p)
				}
			}()
			synctest.Wait()
		}
		take(t.Context(), plain)
		take(t.Context(), plain)
		ctx, cancel := context.WithCancel(t.Context())
		take(t.Context(), plain)
		take(ctx, Ask{Key: "b", Weight: 1, Tier: 3})
		take(t.Context(), Ask{Weight: 2, Tier: 3})
		permits[0].Release() // to the plain one: virtual time has passed less than half of its turn
		cancel()
		synctest.Wait()
		permits[1].Release()
		take(t.Context(), Ask{Key: "a", Weight: 1, Tier: 3})
		if st := e.Stats(func() {}); st.Running != 2 || st.Queued != 1 {
			t.Fatalf("%d slots are in use and %d wait, want 2 and the heavy one", st.Running, st.Queued)
		}
		for _, p := range permits[2:] {
			p.Release()
		}
		synctest.Wait()
		if st := e.Stats(func() {}); st.Running != 2 || st.Queued != 0 {
			t.Errorf("%d slots are in use and %d wait, want the 2 of the heavy one", st.Running, st.Queued)
		}
		permits[4].Release()
	})
}
