package queue

import (
	"cmp"
	"context"
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
	ordered := make(chan struct{}, 1)
	return &session{
		q: q, slots: slots, base: base, halt: halt, worker: q.asWorker(queues, slots, ordered),
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

// asWorker describes this Run to the store, and fixes the set of handlers. ordered
// signals heartbeats of the Run until it leaves.
func (q *Queue) asWorker(queues []string, slots stint.Scheduler, ordered chan<- struct{}) Worker {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settleHandlers()
	kinds := make([]string, 0, len(q.handlers))
	for kind := range q.handlers {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	host, _ := os.Hostname()
	w := Worker{
		Name: q.freeName(ordered), Host: host, PID: os.Getpid(), Kinds: make(map[string][]string),
		Slots: slots.Stats().Limit, Since: q.clock.Now(), Version: version.Module(),
	}
	for _, name := range queues {
		w.Kinds[name] = kinds
	}
	return w
}

// freeName returns a worker's name that no running Run has: the store keeps one
// description for each name. The caller holds the lock.
func (q *Queue) freeName(ordered chan<- struct{}) string {
	name := q.cfg.Worker
	for n := 2; q.running[name] != nil; n++ {
		name = q.cfg.Worker + "-" + strconv.Itoa(n)
	}
	q.running[name] = ordered
	return name
}

// leave makes a worker's name free for another Run.
func (q *Queue) leave(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, name)
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
