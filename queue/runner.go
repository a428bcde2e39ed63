package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/stintgo/stint"
)

// runner is a goroutine that works on tasks, one after the other, each on a slot.
type runner struct {
	d    *dispatcher
	wake chan struct{}   // receives when the runner must seek; closed when it must end
	ctx  context.Context //nolint:containedctx // of all its tasks, one after the other
	stop context.CancelFunc

	// Guarded by the dispatcher's mutex.
	onSlot bool // stops waiting for a slot
}

func newRunner(d *dispatcher) *runner {
	r := &runner{d: d, wake: make(chan struct{}, 1)}
	r.ctx, r.stop = context.WithCancel(d.s.base)
	return r
}

// run seeks tasks and works on them until the dispatcher has no more use for the runner.
// The caller has made it the runner that seeks.
func (r *runner) run() {
	defer r.stop()
	for {
		var err error
		if !r.d.probe() {
			_, err = stint.RunWith(r.ctx, r.d.s.slots, onSlot, r)
		}
		if err != nil {
			r.d.noSlot(r, err)
		} else if r.d.resume(r) {
			continue
		}
		if !r.d.park(r) {
			return
		}
		if _, ok := <-r.wake; !ok {
			return
		}
	}
}

// onSlot works on one task, if there is one.
func onSlot(ctx context.Context, r *runner) (struct{}, error) {
	if a := r.d.take(r); a != nil { //nolint:contextcheck // a claim continues when a waiter for a slot gives up
		defer r.d.ended()
		r.d.s.perform(ctx, a)
	}
	return struct{}{}, nil
}

// begin makes attempts of claimed tasks of a queue. Their leases end at until by the clock of this
// process; the store's clock may show another time.
func (s *session) begin(queue string, tasks []Task, until time.Time) []*Attempt {
	attempts := make([]*Attempt, len(tasks))
	to := s.settlers.byQueue[queue]
	late := !until.After(s.q.clock.Now()) // the claim took longer than the lease
	for i := range tasks {
		attempts[i] = &Attempt{
			Task: tasks[i], lease: leaseOf{tasks[i].ID, tasks[i].Lease.Token}, until: until, heartbeatNow: s.q.runs.heartbeatNow,
			queue: s.q, settler: to,
		}
		if late {
			attempts[i].end(ErrStale)
		}
	}
	s.leases.add(attempts)
	return attempts
}

// perform works on a task, and passes its outcome to the settler of its queue.
func (s *session) perform(ctx context.Context, a *Attempt) {
	if stint.PriorityFrom(ctx) != a.Tier {
		ctx = stint.WithPriority(ctx, a.Tier)
	}
	handling := &stoppable{Context: ctx}
	ctx = handling //nolint:contextcheck // derived from the previous one
	if a.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, a.Timeout)
		defer stop()
	}
	if !a.starts(handling) {
		s.release([]*Attempt{a})
		return
	}
	a.slow, a.round = &s.slow, s.slow.round.Load()
	err := errExited
	defer func() { // even if the handler calls runtime.Goexit
		a.returns()
		a.settler.outcomes <- s.conclude(ctx, a, err)
	}()
	err = protect(ctx, s.handlers[a.Kind], a)
}

// conclude returns the outcome for the error of a handler. If a method of the error panics, as
// that of a nil pointer in an interface may, the panic is the error.
func (s *session) conclude(ctx context.Context, a *Attempt, err error) (o Outcome) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
			o = a.outcomeOf(ctx, err)
			s.adjustClaims(a, o.Kind, err)
		}
	}()
	o = a.outcomeOf(ctx, err)
	s.adjustClaims(a, o.Kind, err)
	return o
}

// adjustClaims slows claims down if a handler returned a shortage. Any other outcome of an
// attempt that was not interrupted shows that it had the resources that it needs.
func (s *session) adjustClaims(a *Attempt, kind OutcomeKind, err error) {
	if !IsShortage(err) {
		if kind != OutcomeRelease {
			a.Started()
		}
		return
	}
	s.slow.begin(s.q.clock.Now())
	s.q.cfg.Logger.Error("this process is short of what tasks need: it releases them, and claims one by one",
		slog.Any("error", err))
}

// release releases tasks that have not started.
func (s *session) release(attempts []*Attempt) {
	for _, a := range attempts {
		a.settler.outcomes <- Outcome{ID: a.lease.id, Token: a.lease.token, Kind: OutcomeRelease}
	}
}
