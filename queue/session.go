package queue

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/version"
)

// session is one call of [Queue.Run]. Its loops are the dispatchers, the settlers, the
// heartbeats, the maintainer, the watchdog of the leases, and the ticker.
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
	leases   *leases
	settlers *settlers

	ordered <-chan struct{} // signals that tasks may have been ordered to stop
	slow    slowdown        // of the claims
}

func newSession(
	base context.Context, halt context.CancelCauseFunc, q *Queue, slots stint.Scheduler, queues []string,
) *session {
	handling := q.handlers.freeze()
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
	held := newLeases(q.clock, q.cfg.Lease)
	return &session{
		q: q, slots: slots, base: base, halt: halt, worker: worker, handlers: handling, ordered: ordered,
		leases: held, settlers: newSettlers(base, q, held, queues),
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
