package queue

import (
	"context"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Queue submits tasks to a store and runs them. It is safe for concurrent use.
type Queue struct {
	store Store
	cfg   Config
	ids   IDs
	clock clock.Steady
	wall  func() time.Time // what schedules go by

	followers followers

	halted   chan struct{} // closed when Run is to return at once
	haltOnce sync.Once

	mu       sync.Mutex
	handlers map[string]Handler
	around   []func(Handler) Handler
	running  map[string]chan<- struct{} // Runs under way, by name; a signal asks for a heartbeat
	ran      bool                       // Run has been called: handlers stay as they are, with what is around them
	soon     chan time.Time             // something is due then
	changed  chan struct{}              // schedules may have been changed here
}

// New returns a queue on a store, which stays the caller's to close. It starts
// nothing. It panics if the configuration is not valid.
func New(store Store, cfg Config) *Queue {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return &Queue{
		store: store, cfg: cfg, ids: IDs{Random: cfg.Random}, clock: clock.New(), wall: wall,
		handlers: make(map[string]Handler), running: make(map[string]chan<- struct{}), halted: make(chan struct{}),
		soon: make(chan time.Time, 1), changed: make(chan struct{}, 1),
		followers: followers{store: store, pause: cfg.Poll},
	}
}

// Why says why a task waits, the binding reason first.
func (q *Queue) Why(ctx context.Context, id ID) ([]Reason, error) {
	return q.store.Explain(ctx, q.clock.Now(), id)
}

// heartbeatNow triggers a heartbeat in every Run, so that stop orders arrive now.
func (q *Queue) heartbeatNow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, ordered := range q.running {
		signal(ordered)
	}
}

// Stats counts.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx, q.clock.Now()) }

// dueAt says that something is due at a time, so that the maintenance of this
// process does not sleep through it.
func (q *Queue) dueAt(at time.Time) {
	if at.IsZero() {
		return
	}
	for {
		select {
		case q.soon <- at:
			return
		case other := <-q.soon:
			if other.Before(at) {
				at = other
			}
		}
	}
}

// taken takes what a channel has, or nothing.
func taken[T any](from <-chan T) (value T) {
	select {
	case value = <-from:
	default:
	}
	return value
}

// signal sends a signal unless there is one.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
