package machine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// gatedCommand applies batches one at a time until a command to one task is durable.
func gatedCommand(t *testing.T, m *machine.Machine, r *rows, now time.Time, do queue.Order, id queue.ID) {
	t.Helper()
	gatedCall(r, func() {
		c := queue.Command{Do: do, Filter: queue.Filter{IDs: []queue.ID{id}}}
		if n, err := m.Command(t.Context(), now, c); n != 1 || err != nil {
			t.Errorf("%s changes %d tasks, error %v", do, n, err)
		}
	})
}

// gatedCall applies batches one at a time until a call has returned.
func gatedCall(r *rows, call func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	for {
		synctest.Wait()
		select {
		case <-ended:
			return
		case r.gate <- struct{}{}:
		}
	}
}

// A clock that was ahead when very many tasks began to be cancelled is corrected. A task
// that is retried after that is not cancelled again.
func TestC8_ClockAheadDuringACascade(t *testing.T) {
	const n = 1500
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := newRows()
		m := openOn(t, r)
		var ids queue.IDs
		one, other := newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{Options: queue.Options{Queue: "other"}})
		submit(t, m, one, other)
		tasks := make([]queue.NewTask, n)
		for i := range tasks {
			tasks[i] = newTask(&ids, queue.Spec{Kind: "many", Options: queue.Options{After: []queue.ID{one.ID, other.ID}}})
		}
		submit(t, m, tasks...)
		die(t, m, start)
		r.gate = make(chan struct{})
		gatedCommand(t, m, r, start.Add(time.Hour), queue.OrderForget, one.ID)
		again := r.crash()
		again.gate = make(chan struct{})
		opened := make(chan *machine.Machine)
		go func() { opened <- openOn(t, again) }()
		synctest.Wait()
		again.gate <- struct{}{} // the batches of Open itself
		later := <-opened
		gatedCommand(t, later, again, start.Add(time.Minute), queue.OrderRetry, tasks[0].ID)
		if got := count(t, later, queue.Filter{})[queue.Cancelled]; got >= n-1 {
			t.Fatal("all have been cancelled already")
		}
		last := openOn(t, again.crash())
		drained()
		if got := count(t, last, queue.Filter{Kind: "many"}); got[queue.Cancelled] != n-1 || got[queue.Held] != 1 {
			t.Errorf("the tasks are %v, want one held and all others cancelled", got)
		}
		close(r.gate)
		close(again.gate)
	})
}

// If a cascade or a release has not reached a task yet, the task's reason names the
// predecessor that was forgotten, also in a store that is opened meanwhile.
func TestC4_TaskAboutToGoOnIsExplained(t *testing.T) {
	const n = 5000 // some steps, of 100 tasks each, come before Explain
	success, anyOutcome := wides()[0], wides()[2]
	released := queue.Hold{Code: queue.HoldDependency, State: queue.Succeeded}
	for _, c := range []struct {
		name string
		wide wide
		on   queue.OutcomeKind // finishes the first task
		want queue.Hold
	}{
		{"cascade", success, queue.OutcomeFailure, queue.Hold{Code: queue.HoldForgotten}},
		{"release", success, queue.OutcomeSuccess, released},
		{"any outcome", anyOutcome, queue.OutcomeFailure, released},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer drained()
				r := newRows()
				m := openOn(t, r)
				first, tasks := submitWide(t, m, c.wide, n)
				r.gate = make(chan struct{}, 1)
				r.gate <- struct{}{}
				wide{on: c.on}.end(t, m, first)
				gatedCommand(t, m, r, start, queue.OrderForget, first.ID)
				again := r.crash()
				again.gate = make(chan struct{}, 1)
				again.gate <- struct{}{} // the batches of Open itself
				defer close(again.gate)
				for _, m := range []*machine.Machine{m, openOn(t, again)} {
					synctest.Wait()
					reasons, err := m.Explain(t.Context(), start, tasks[n-1].ID)
					if err != nil || len(reasons) == 0 {
						t.Fatal(reasons, err)
					}
					r := reasons[0]
					got := queue.Hold{Code: queue.HoldCode(r.Code), What: r.What, State: r.State}
					if c.want.What = first.ID.String(); got != c.want {
						t.Errorf("the first reason is %+v, want %+v", got, c.want)
					}
				}
				close(r.gate)
			})
		})
	}
}

// closableRows count the reads after Close.
type closableRows struct {
	*rows
	closed atomic.Bool
	late   atomic.Int32
}

func (r *closableRows) Get(key string) ([]byte, error) {
	if r.closed.Load() {
		r.late.Add(1)
	}
	return r.rows.Get(key)
}

func (r *closableRows) Close() error {
	r.closed.Store(true)
	return nil
}

// slowContext blocks in Err until it is released.
type slowContext struct {
	context.Context //nolint:containedctx // the type is a context
	released        chan struct{}
}

func (c slowContext) Err() error {
	<-c.released
	return nil
}

// If a store is closed before a purge has found all of its very many tasks, the purge
// does not read the closed rows.
func TestC12_PurgeThatCloseEndsReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := &closableRows{rows: newRows()}
		m := openOn(t, r)
		const n = 3000
		var ids queue.IDs
		firsts, then := make([]queue.NewTask, n), make([]queue.NewTask, n)
		for i := range firsts {
			firsts[i] = newTask(&ids, queue.Spec{})
			then[i] = newTask(&ids, queue.Spec{Kind: "many", Options: queue.Options{After: []queue.ID{firsts[i].ID}}})
		}
		submit(t, m, firsts...)
		submit(t, m, then...)
		cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: "kind"}}
		if got, err := m.Command(t.Context(), start, cancel); got != n || err != nil {
			t.Fatal(got, err)
		}
		ctx := slowContext{t.Context(), make(chan struct{}, 2)}
		ctx.released <- struct{}{} // the first part is found
		ctx.released <- struct{}{} // and purged
		ended := make(chan error)
		go func() {
			_, err := m.Command(ctx, start, queue.Command{Do: queue.OrderForget, Filter: queue.Filter{Kind: "kind"}})
			ended <- err
		}()
		synctest.Wait()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		close(ctx.released)
		if err := <-ended; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("the purge is answered %v", err)
		}
		if got := r.late.Load(); got > 0 {
			t.Errorf("the closed store is read %d times", got)
		}
	})
}
