package queue

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Queue submits tasks to a store and runs them. It is safe for concurrent use.
type Queue struct {
	store Store
	cfg   Config
	ids   IDs
	clock clock.Steady
	wall  func() time.Time // the clock of schedules

	handlers  handlers
	runs      runs
	followers followers
	schedules schedules
	shutdown  shutdown
	soon      earliest // when a new task is due
}

// New returns a queue on a store, which the caller closes. It starts no goroutine. It
// panics if the configuration is not valid.
func New(store Store, cfg Config) *Queue {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	q := &Queue{
		store: store, cfg: cfg, ids: IDs{Random: cfg.Random}, clock: clock.Of(store), wall: wall,
		handlers: handlers{byKind: make(map[string]Handler)}, runs: runs{byName: make(map[string]chan<- struct{})},
		followers: followers{store: store, pause: cfg.Poll},
		shutdown:  shutdown{grace: cfg.Grace, waitDelay: cfg.WaitDelay, halted: make(chan struct{})},
		soon:      make(earliest, 1),
	}
	q.schedules = schedules{store: store, clock: q.clock, ids: &q.ids, changed: make(chan struct{}, 1)}
	return q
}

// Why returns the reasons why a task waits, the binding reason first, and none if it is
// running or finished. Errors: ErrNotFound.
func (q *Queue) Why(ctx context.Context, id ID) ([]Reason, error) {
	return q.store.Explain(ctx, q.clock.Now(), id)
}

// Stats returns the counts of tasks, by queue and state, the workers, and the limits in
// force.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx, q.clock.Now()) }

// earliest is a channel that holds one value, the earliest of the times that were added and
// not received.
type earliest chan time.Time

// add adds a time, which is ignored if it is zero.
func (c earliest) add(at time.Time) {
	if at.IsZero() {
		return
	}
	for {
		select {
		case c <- at:
			return
		case other := <-c:
			if other.Before(at) {
				at = other
			}
		}
	}
}

// taken empties a channel that holds one value.
func taken[T any](from <-chan T) (value T) {
	select {
	case value = <-from:
	default:
	}
	return value
}

// signal puts a signal into a channel that holds one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
