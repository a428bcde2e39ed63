package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint"
)

// session is one call of [Queue.Run]. Its loops are the dispatchers, the settler,
// the beater and the tender.
type session struct {
	q      *Queue
	slots  stint.Scheduler
	worker Worker
	// base is what handlers' contexts are made of. It ends when they are to end
	// though the caller's has ended long ago.
	base     context.Context //nolint:containedctx // handed to what the session starts
	stopping <-chan struct{} // nothing more is claimed

	working  sync.WaitGroup // claims and handlers
	outcomes chan Outcome

	mu   sync.Mutex
	runs map[leaseOf]*run // of one task there may be an old one, that has yet to end
}

// leaseOf names a lease: tokens are a task's own.
type leaseOf struct {
	id    ID
	token Token
}

// outcomesAhead is how many outcomes may wait for the settler before handlers
// keep their slots until there is room.
const outcomesAhead = 1024

// Run works on the tasks of some queues, of the kinds that have handlers, until
// ctx ends; "default" if none is named. A task runs on one slot of a scheduler,
// which may be shared with the rest of the program, and its context carries its
// tier and its place there, so that what it starts goes the same way.
//
// When ctx ends, nothing more is claimed, and Run waits for the handlers. Those
// that are still at work after [Config.Grace] have their contexts ended with
// [ErrStopping], and their tasks given back: that is no failed attempt. After as
// long again Run returns an error that names the tasks whose handlers do not
// end; they run again elsewhere when their leases are over. Otherwise it returns
// the cause of ctx's end.
func (q *Queue) Run(ctx context.Context, slots stint.Scheduler, queues ...string) error {
	if len(queues) == 0 {
		queues = []string{"default"}
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	s := &session{
		q: q, slots: slots, base: base, stopping: ctx.Done(), worker: q.asWorker(queues, slots),
		outcomes: make(chan Outcome, outcomesAhead), runs: make(map[leaseOf]*run),
	}
	var dispatchers, loops, settling sync.WaitGroup
	loopsCtx, endLoops := context.WithCancel(base)
	for _, name := range queues {
		dispatchers.Go(func() { s.dispatch(ctx, name) })
	}
	settling.Go(s.settle)
	loops.Go(func() { s.beatUntil(loopsCtx) })
	loops.Go(func() { s.tendUntil(loopsCtx) })

	dispatchers.Wait() // until ctx ends; what they have started may still start a last claim
	err := s.end(stop)
	endLoops()
	loops.Wait()
	if err != nil {
		go func() { // the settler stays for those that end after all
			s.working.Wait()
			close(s.outcomes)
		}()
		return errors.Join(context.Cause(ctx), err)
	}
	close(s.outcomes)
	settling.Wait()
	return context.Cause(ctx)
}

// asWorker describes this process, and closes the list of handlers.
func (q *Queue) asWorker(queues []string, slots stint.Scheduler) Worker {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ran = true
	kinds := make([]string, 0, len(q.handlers))
	for kind := range q.handlers {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	host, _ := os.Hostname()
	w := Worker{
		Name: q.cfg.Worker, Host: host, PID: os.Getpid(), Kinds: make(map[string][]string),
		Slots: slots.Stats().Limit, Since: q.clock.now(),
	}
	for _, name := range queues {
		w.Kinds[name] = kinds
	}
	return w
}

// end waits for the handlers, first as they are and then with their contexts
// ended.
func (s *session) end(stop context.CancelCauseFunc) error {
	ended := make(chan struct{})
	go func() {
		s.working.Wait()
		close(ended)
	}()
	for range 2 {
		select {
		case <-ended:
			return nil
		case <-time.After(s.q.cfg.Grace):
			stop(ErrStopping)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	for _, r := range s.runs {
		left = append(left, fmt.Sprintf("%s (%s)", r.task.ID, r.task.Kind))
	}
	slices.Sort(left)
	return fmt.Errorf("queue: handlers do not end though their contexts have: %v", left)
}

// add makes a task one of this session.
func (s *session) add(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[leaseOf{r.task.ID, r.task.Lease.Token}] = r
}

// remove is the opposite.
func (s *session) remove(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, leaseOf{o.ID, o.Token})
}
