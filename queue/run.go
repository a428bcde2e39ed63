package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint"
)

// Run works on the tasks of some queues, of the kinds that have handlers, until
// ctx ends; "default" if none is named. A task runs on one slot of a scheduler,
// which may be shared with the rest of the program, and its context carries its
// tier and its place there, so that what it starts goes the same way.
//
// When ctx ends, nothing more is claimed, and Run waits for the handlers. Those
// that are still at work after [Config.Grace] have their contexts ended with
// [ErrStopping], and their tasks given back: that is no failed attempt. After
// [Config.Linger] Run returns an error that names the tasks whose handlers do not
// end; they run again elsewhere when their leases are over. Otherwise it returns
// the cause of ctx's end, when the store knows all outcomes, or has not taken them
// for as long as a lease lasts, and the hooks have received them; these have
// the same times again. [Queue.Halt] cuts all of that short.
//
// Any number of Runs may work on a queue, in this process and in others, with
// different kinds or on different slots: all of them get signals of its tasks.
func (q *Queue) Run(ctx context.Context, slots stint.Scheduler, queues ...string) error {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s := newSession(base, q, slots, queueNames(queues))
	defer q.leave(s.worker.Name)

	var dispatchers, loops sync.WaitGroup
	loopsCtx, endLoops := context.WithCancel(context.WithoutCancel(ctx)) // leases last until the last handler has ended
	defer endLoops()
	hooks := s.startHooks(context.WithoutCancel(ctx))
	hooks.begun(ctx)
	select {
	case <-q.halted: // before anything is claimed
		halt(ErrStopping)
	default:
	}
	settled := make(chan struct{})
	go func() { //nolint:contextcheck // outcomes are settled after all contexts have ended
		defer close(settled)
		s.settle()
	}()
	for name := range s.worker.Kinds {
		dispatchers.Go(func() { s.dispatch(ctx, name) })
	}
	for _, loop := range []func(context.Context){s.expireUntil, s.heartbeatUntil, s.maintainUntil} {
		loops.Go(func() { loop(loopsCtx) })
	}
	loops.Go(func() { s.tickUntil(ctx) })
	loops.Go(func() { q.haltUntil(ctx, halt) })

	dispatchers.Wait() // until ctx ends
	err := s.end(stop)
	s.settleBy.Store(q.clock.Now().Add(q.cfg.Lease).UnixNano())
	endLoops()
	loops.Wait()
	if err != nil {
		go func() { // the settler stays for those that end after all
			s.working.Wait()
			close(s.outcomes)
		}()
	} else {
		close(s.outcomes)
		err = s.await(settled)
	}
	if err = errors.Join(err, hooks.end()); err != nil { // they receive the last outcomes
		return errors.Join(context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

// haste is the time limit of what was ordered to end at once.
const haste = 100 * time.Millisecond

// Halt has Run return at once, every Run of this queue now and later: as the
// second signal to end should. The contexts of handlers end with [ErrStopping]; a
// tenth of a second later Run leaves behind those that have not ended, hooks that
// are at work, and outcomes that the store has not taken, and its error says so.
// What ran runs again: at once if its handler has ended, or else when its lease is
// over. Neither is a failed attempt.
//
// It may be called more than once, and does not wait.
func (q *Queue) Halt() { q.haltOnce.Do(func() { close(q.halted) }) }

// haltUntil ends what Run does when Halt is called, until ctx ends.
func (q *Queue) haltUntil(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-q.halted:
		end(ErrStopping)
	case <-ctx.Done():
	}
}

// end waits for the handlers, first as they are and then with their contexts
// ended.
func (s *session) end(stop context.CancelCauseFunc) error {
	if s.q.wind(&s.working, stop) {
		return nil
	}
	return s.left()
}

// wind waits for what is at work, first as it is and then ordered to stop, and reports
// whether it has ended.
func (q *Queue) wind(atWork *sync.WaitGroup, stop func(error)) bool {
	ended := make(chan struct{})
	go func() {
		atWork.Wait()
		close(ended)
	}()
	for _, wait := range []time.Duration{q.cfg.Grace, q.cfg.Linger} {
		select {
		case <-ended:
			return true
		case <-time.After(wait):
			stop(ErrStopping)
		case <-q.halted:
			stop(ErrStopping)
			return within(haste, ended)
		}
	}
	return false
}

// left is an error that names the tasks whose handlers have not ended.
func (s *session) left() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	for _, a := range s.runs {
		left = append(left, fmt.Sprintf("%s (%s)", a.lease.id, a.Kind))
	}
	if len(left) == 0 {
		return errors.New("queue: the store does not answer a claim; what that took runs again when its lease is over")
	}
	slices.Sort(left)
	return fmt.Errorf("queue: handlers do not return though their contexts have ended: %v", left)
}

// await waits for the outcomes to be settled.
func (s *session) await(settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	case <-s.q.halted:
	}
	if within(haste, settled) {
		return nil
	}
	return errors.New("queue: the store has not taken all outcomes; those tasks run again when their leases are over")
}

// within reports whether something is done in a time.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
