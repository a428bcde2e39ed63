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

// Run works on the tasks of some queues, of the kinds that have handlers, until ctx ends;
// on [DefaultQueue] if none is named. A task runs on a slot of the scheduler, which the
// rest of the program may use too. The context of its handler has the task's tier and its
// place in that scheduler, for the functions that the handler starts.
//
// When ctx ends, Run claims nothing more and waits for the handlers. After [Config.Grace]
// it ends the contexts of those that still run with [ErrStopping], and releases their
// tasks; such an attempt does not count as failed. After [Config.WaitDelay] Run returns an
// error that names the tasks whose handlers have not returned; they run again elsewhere
// when their leases expire. Otherwise Run returns the cause of the end of ctx, when the
// store has accepted all outcomes, or has refused them for the length of a lease, and the
// hooks have received them, within the same time limits again. Run also waits for the outcomes
// of handlers that have returned if others have not. [Queue.Halt] ends all of these waits.
// A store that has been closed ends Run in the same way, with [ErrClosed].
//
// Any number of Runs may work on a queue, in this process and in others, with different
// kinds or on different slots. A signal for a task reaches all of them in the process that has
// the store; of the clients of a server it reaches one at first, and more while tasks wait.
func (q *Queue) Run(ctx context.Context, slots stint.Scheduler, queues ...string) error {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s := newSession(base, halt, q, slots, queueNames(queues))
	defer q.runs.remove(s.worker.Name)

	var dispatchers, loops sync.WaitGroup
	loopsCtx, endLoops := context.WithCancel(context.WithoutCancel(ctx)) // leases live until the last handler ends
	defer endLoops()
	hooks := s.startHooks(context.WithoutCancel(ctx))
	hooks.begun(ctx)
	select {
	case <-q.shutdown.halted: // before anything is claimed
		halt(ErrStopping)
	default:
	}
	settled := make(chan struct{})
	go func() { // outcomes are settled after all contexts have ended
		defer close(settled)
		s.settlers.run()
	}()
	for name := range s.worker.Kinds {
		dispatchers.Go(func() { s.dispatch(ctx, name) })
	}
	for _, loop := range []func(context.Context){s.leases.expireUntil, s.heartbeatUntil, s.maintainUntil} {
		loops.Go(func() { loop(loopsCtx) })
	}
	loops.Go(func() { s.tickUntil(ctx) })
	loops.Go(func() { q.shutdown.haltUntil(ctx, halt) })

	dispatchers.Wait() // until ctx ends
	err := s.end(stop)
	by := q.clock.Now().Add(q.cfg.Lease)
	s.settlers.by.Store(&by)
	endLoops()
	loops.Wait()
	if err != nil {
		go func() { // the settlers continue for handlers that return later
			s.working.Wait()
			s.settlers.close()
		}()
		s.awaitReturned()
	} else {
		s.settlers.close()
		err = s.await(settled)
	}
	if err = errors.Join(err, hooks.end()); err != nil { // the hooks receive the last outcomes
		return errors.Join(context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

// haltTimeout is how long a Run waits for what Halt has ordered to end.
const haltTimeout = 100 * time.Millisecond

// Halt makes every Run of this queue return at once, also later calls of Run. It is for
// the second signal to end a program. The contexts of handlers end with [ErrStopping]. A
// tenth of a second later Run returns, with an error that names the handlers and hooks
// that have not returned and the outcomes that the store has not accepted. The tasks run
// again: at once if their handlers have returned, otherwise when their leases expire.
// Such an attempt does not count as failed.
//
// Halt may be called more than once, and does not block.
func (q *Queue) Halt() { q.shutdown.halt() }

// shutdown is how the Runs of a queue stop: how long they wait for functions, and whether
// Halt has been called.
type shutdown struct {
	grace, waitDelay time.Duration

	once   sync.Once
	halted chan struct{} // closed when Run must return at once
}

func (s *shutdown) halt() { s.once.Do(func() { close(s.halted) }) }

// haltUntil ends the contexts and waits of Run when Halt is called, until ctx ends.
func (s *shutdown) haltUntil(ctx context.Context, end context.CancelCauseFunc) {
	select {
	case <-s.halted:
		end(ErrStopping)
	case <-ctx.Done():
	}
}

// end waits for the handlers, for Grace, and then ends their contexts and waits for
// WaitDelay.
func (s *session) end(stop context.CancelCauseFunc) error {
	if s.q.shutdown.wait(&s.working, stop) {
		return nil
	}
	return s.left()
}

// wait waits for functions in two stages, of which the second begins with an order to stop.
// It reports whether they have ended.
func (s *shutdown) wait(atWork *sync.WaitGroup, stop func(error)) bool {
	ended := make(chan struct{})
	go func() {
		atWork.Wait()
		close(ended)
	}()
	for _, wait := range []time.Duration{s.grace, s.waitDelay} {
		select {
		case <-ended:
			return true
		case <-time.After(wait):
			stop(ErrStopping)
		case <-s.halted:
			stop(ErrStopping)
			return within(haltTimeout, ended)
		}
	}
	return false
}

// left returns an error that names the tasks whose handlers have not returned.
func (s *session) left() error {
	var left []string
	for _, a := range s.leases.attempts() {
		left = append(left, fmt.Sprintf("%s (%s)", a.lease.id, a.Kind))
	}
	if len(left) == 0 {
		return errors.New("queue: the store has not answered a claim; tasks that it leased run again when the leases expire")
	}
	slices.Sort(left)
	return fmt.Errorf("queue: handlers do not return though their contexts have ended: %v", left)
}

// await waits for the outcomes to be settled.
func (s *session) await(settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	case <-s.q.shutdown.halted:
	}
	if within(haltTimeout, settled) {
		return nil
	}
	return errors.New("queue: the store has not taken all outcomes; those tasks run again when their leases are over")
}

// awaitReturned waits for the outcomes of handlers that have returned to be settled, while those
// of others are still to come.
func (s *session) awaitReturned() {
	for slices.ContainsFunc(s.leases.attempts(), (*Attempt).hasReturned) {
		select {
		case <-s.leases.fewer:
		case <-s.q.shutdown.halted:
			return
		}
	}
}

// within reports whether a channel is closed within a time.
func within(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
