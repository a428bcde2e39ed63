package queue

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/version"
)

// session is one call of [Queue.Run]. Its loops are the dispatchers, the settler, the
// heartbeats, the maintainer, the lease watchdog of expiry.go, and the ticker.
type session struct {
	q      *Queue
	slots  stint.Scheduler
	worker Worker
	// handlers are in their middleware, by kind.
	handlers map[string]Handler
	// base is the parent of the handlers' contexts. It ends when handlers must end,
	// which is later than the end of the caller's context.
	base context.Context         //nolint:containedctx // passed to the loops
	halt context.CancelCauseFunc // ends Run as the end of the caller's context does

	working  sync.WaitGroup // claims and handlers
	outcomes chan Outcome
	// settleBy is set when the handlers have ended: no outcome is retried after that.
	settleBy atomic.Pointer[time.Time]

	ordered <-chan struct{} // signals that tasks may have been ordered to stop
	sooner  chan struct{}   // signals a lease that ends before the watchdog would look
	slow    slowdown        // of the claims

	mu        sync.Mutex
	first     time.Time            // when the watchdog looks next
	postponed bool                 // it was so late that it did not look, see catchUp
	runs      map[leaseOf]*Attempt // a task may have an earlier attempt that has not ended yet
	last      lastEnd              // of the leases that the store has settled
	fewer     chan struct{}        // signals that runs has lost an attempt
}

// lastEnd is the end of a lease, and when the store acknowledged it.
type lastEnd struct {
	lease        leaseOf
	acknowledged time.Time
}

// outcomesAhead is the number of outcomes that may wait for the settler before handlers
// keep their slots.
const outcomesAhead = 1024

func newSession(
	base context.Context, halt context.CancelCauseFunc, q *Queue, slots stint.Scheduler, queues []string,
) *session {
	handling := q.handlers.fix()
	kinds := slices.AppendSeq(make([]string, 0, len(handling)), maps.Keys(handling)) // not nil, without handlers too
	slices.Sort(kinds)
	ordered := make(chan struct{}, 1)
	host, _ := os.Hostname()
	worker := Worker{
		Name: q.runs.add(q.cfg.Worker, ordered), Host: host, PID: os.Getpid(), Kinds: make(map[string][]string),
		Slots: slots.Stats().Limit, Since: q.clock.Now(), Version: version.Module(),
	}
	for _, name := range queues {
		worker.Kinds[name] = kinds
	}
	return &session{
		q: q, slots: slots, base: base, halt: halt, worker: worker, handlers: handling,
		outcomes: make(chan Outcome, outcomesAhead), runs: make(map[leaseOf]*Attempt),
		ordered: ordered, sooner: make(chan struct{}, 1), first: q.clock.Now().Add(q.cfg.Lease),
		fewer: make(chan struct{}, 1),
	}
}

// queueNames returns the queues to run, without duplicates.
func queueNames(names []string) []string {
	if len(names) == 0 {
		return []string{DefaultQueue}
	}
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = cmp.Or(name, DefaultQueue)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// runs are the Runs of a queue that have not returned, by the names of their workers: the
// store keeps one description for each name.
type runs struct {
	mu     sync.Mutex
	byName map[string]chan<- struct{} // a signal triggers a heartbeat
}

// add adds a Run, and returns its name: the given one, with a number if another Run has it.
func (r *runs) add(worker string, heartbeat chan<- struct{}) (name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name = worker
	for n := 2; r.byName[name] != nil; n++ {
		name = worker + "-" + strconv.Itoa(n)
	}
	r.byName[name] = heartbeat
	return name
}

// remove makes the name of a Run free for another one.
func (r *runs) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}

// heartbeatNow triggers a heartbeat in every Run, so that stop orders arrive now.
func (r *runs) heartbeatNow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, heartbeat := range r.byName {
		signal(heartbeat)
	}
}

// add registers attempts with the session.
func (s *session) add(attempts []*Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range attempts {
		s.runs[a.lease] = a
		s.expect(a)
	}
}

// remove unregisters the attempt of an outcome.
func (s *session) remove(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(leaseOf{o.ID, o.Token})
}

// done is remove for an outcome that the store has settled.
func (s *session) done(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := leaseOf{o.ID, o.Token}
	s.forget(lease)
	s.last = lastEnd{lease, s.q.clock.Now()}
}

// forget removes a lease. The caller holds the lock.
func (s *session) forget(lease leaseOf) {
	delete(s.runs, lease)
	signal(s.fewer)
}

// ours reports whether a lease is one of this session's unsettled leases, or the one that
// was settled last.
func (s *session) ours(lease leaseOf) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[lease] != nil || s.last.lease == lease
}
