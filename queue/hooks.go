package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// deadAhead is the number of dead letters that may wait for a slow hook. Their IDs take
// 16 bytes each.
const deadAhead = 10_000

// hooks calls the hooks of a configuration for a session's queues. Each hook has its own
// watch and goroutine, so a slow hook delays neither the other one nor the queue.
type hooks struct {
	s    *session
	ctx  context.Context //nolint:containedctx // the parent of the contexts of all calls of hooks
	stop context.CancelFunc
	all  sync.WaitGroup

	watches int
	began   chan struct{}      // receives once from each watch, when it has begun or cannot begin for now
	over    chan struct{}      // closed when the session causes no more events
	at      time.Time          // when over was closed; set before, as is last
	last    map[string]lastEnd // by queue, the last leases that the session has settled

	onEvent, onDead atomic.Bool // a call of a hook is in progress
}

// startHooks starts the hooks. ctx is the parent of their contexts.
func (s *session) startHooks(ctx context.Context) *hooks {
	h := &hooks{s: s, began: make(chan struct{}, 2), over: make(chan struct{})}
	h.ctx, h.stop = context.WithCancel(ctx)
	if s.q.cfg.OnEvent != nil {
		h.watches++
		h.all.Go(func() { //nolint:contextcheck // hooks have a context of their own
			h.watch("OnEvent", func(e Event) { h.call(&h.onEvent, func() { s.q.cfg.OnEvent(h.ctx, e) }) })
		})
	}
	if s.q.cfg.OnDead != nil {
		h.watches++
		fresh := make(chan ID, deadAhead)
		h.all.Go(func() { //nolint:contextcheck // hooks have a context of their own
			defer close(fresh)
			h.watch("OnDead", func(e Event) { h.died(e, fresh) })
		})
		h.all.Go(func() { h.callDead(fresh) })
	}
	return h
}

// begun waits until the watches of the hooks have begun, so that they receive all events
// of the session. It returns earlier if the store cannot be reached, if ctx or the
// session ends, or after the time of a claim.
func (h *hooks) begun(ctx context.Context) {
	late := time.NewTimer(h.s.q.cfg.Lease)
	defer late.Stop()
	for range h.watches {
		select {
		case <-h.began:
		case <-ctx.Done():
			return
		case <-h.s.q.shutdown.halted:
			return
		case <-late.C:
			h.s.q.cfg.Logger.Warn("hooks may miss events: the store has not confirmed that it sends them")
			return
		}
	}
}

// end delivers the last outcomes of the session to the hooks, and waits for the hooks as
// for handlers.
func (h *hooks) end() error {
	defer h.stop()
	h.last = h.s.leases.lastSettled() // before the clock: none was settled later than at
	h.at = h.s.q.clock.Now()
	close(h.over)
	if h.s.q.shutdown.wait(&h.all, func(error) { h.stop() }) {
		return nil
	}
	return fmt.Errorf("queue: hooks do not return though their contexts have ended (at work: OnEvent %t, OnDead %t)",
		h.onEvent.Load(), h.onDead.Load())
}

// watch calls fn for the events of the session's queues, up to the last one of the
// session, or until the hooks' context ends.
func (h *hooks) watch(name string, fn func(Event)) {
	ctx, stop := context.WithCancel(h.ctx)
	defer stop()
	var steps atomic.Int64 // odd while an event is delivered
	go h.stopWhenQuiet(ctx, stop, &steps)
	began := sync.OnceFunc(func() { h.began <- struct{}{} })
	reached := mark{h: h, ends: make(map[string]end)}
	watch(ctx, h.s.q.store, h.s.q.cfg.Poll, began, func(e Event) {
		steps.Add(1)
		defer steps.Add(1)
		switch _, ours := h.s.worker.Kinds[e.Queue]; {
		case reached.later(e):
			stop()
		case ours && ctx.Err() == nil:
			fn(e)
		}
	})
	if h.ctx.Err() != nil {
		h.s.q.cfg.Logger.Warn("Run ended before a hook received all events", slog.String("hook", name))
	}
}

// mark is the progress of a watch through the events of the session. Events have the time
// of the store's clock, which may differ from that of this process: the last event that
// both know gives the difference.
type mark struct {
	h *hooks
	// ends are, by queue, the last ends of the session's leases that the watch has delivered. The
	// store answers the calls of different queues in any order, those of one queue in theirs.
	ends map[string]end
}

// end is the end of a lease, by the store's clock.
type end struct {
	lease leaseOf
	at    time.Time
}

// later reports whether an event happened after the session had ended, so that events of
// other workers do not keep Run from returning.
func (m *mark) later(e Event) bool {
	if lease := (leaseOf{e.ID, e.Token}); e.From == Running && m.h.s.leases.has(e.Queue, lease) {
		m.ends[e.Queue] = end{lease, e.At}
	}
	select {
	case <-m.h.over:
	default:
		return false
	}
	if len(m.h.last) == 0 { // nothing has been settled, so the difference of the clocks is unknown
		return e.At.After(m.h.at.Add(haltTimeout))
	}
	for queue, last := range m.h.last {
		reached := m.ends[queue]
		if last.lease != reached.lease { // that end is still to come, or was missed
			return false
		}
		// Counted from when the outcome was sent first, and not from the answer: a call that was not
		// answered may have settled it.
		if !e.At.After(reached.at.Add(m.h.at.Sub(last.sent) + haltTimeout)) {
			return false
		}
	}
	return true
}

// stopWhenQuiet ends a watch when the session has ended and no more events come. A store
// does not say which event is the last, and a remote store sends events later than it
// answers calls.
func (h *hooks) stopWhenQuiet(ctx context.Context, stop func(), steps *atomic.Int64) {
	select {
	case <-h.over:
	case <-ctx.Done():
		return
	}
	for before := steps.Load(); ; before = steps.Load() {
		select {
		case <-time.After(haltTimeout):
		case <-ctx.Done():
			return
		}
		if before%2 == 0 && steps.Load() == before {
			stop()
			return
		}
	}
}

// died queues a dead letter for the hook.
func (h *hooks) died(e Event, fresh chan<- ID) {
	if e.Missed > 0 {
		h.s.q.cfg.Logger.Warn("events were missed; OnDead is not called for dead letters among them",
			slog.Int("events", e.Missed))
	}
	if e.To != Dead {
		return
	}
	select {
	case fresh <- e.ID:
	default:
		h.s.q.cfg.Logger.Warn("OnDead is too slow and is not called for a dead letter", slog.Any("task", e.ID))
	}
}

// callDead calls the hook with each dead letter that is still dead, and logs the number
// of those for which there was no time.
func (h *hooks) callDead(fresh <-chan ID) {
	q, left := h.s.q, 0
	for id := range fresh {
		if h.ctx.Err() != nil {
			left++
			continue
		}
		task, err := q.Get(h.ctx, id)
		switch {
		case err == nil && task.State == Dead:
			h.call(&h.onDead, func() { q.cfg.OnDead(h.ctx, task) })
		case err != nil && !errors.Is(err, ErrNotFound):
			q.cfg.Logger.Error("read a dead letter for OnDead", slog.Any("task", id), slog.Any("error", err))
		}
	}
	if left > 0 {
		q.cfg.Logger.Warn("Run ended before OnDead was called for all dead letters", slog.Int("tasks", left))
	}
}

// call calls a hook in a goroutine of its own, which the hook may end, and logs its panic or
// runtime.Goexit.
func (h *hooks) call(atWork *atomic.Bool, hook func()) {
	atWork.Store(true)
	defer atWork.Store(false)
	var calling sync.WaitGroup
	calling.Go(func() {
		returned := false
		defer func() {
			switch v := recover(); {
			case v != nil:
				h.s.q.cfg.Logger.Error("a hook panicked",
					slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			case !returned:
				h.s.q.cfg.Logger.Error("a hook called runtime.Goexit")
			}
		}()
		hook()
		returned = true
	})
	calling.Wait()
}
