package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/stintgo/stint/retry"
)

// Config is how a [Queue] works. The zero value is a good default.
type Config struct {
	// Worker is the name under which this process claims tasks. It must be new at
	// each start; it is made of the host's name, the process and chance if it is
	// empty.
	Worker string
	// Lease is how long a task is this process's without a sign of life: 30 s if
	// it is 0. It has nothing to do with how long the work takes, because leases
	// are extended three times as often; it is how long a task waits whose worker
	// has died.
	Lease time.Duration
	// Retry says when a task that has failed is tried again; its Attempts are not
	// used, since each task has its own. Unset is [retry.TaskPolicy].
	Retry retry.Policy
	// Poll is how often this process looks for what nobody has told it of: 1 s if
	// it is 0.
	Poll time.Duration
	// Grace is how long handlers have to end by themselves when Run is to return,
	// before their contexts end: 30 s if it is 0.
	Grace time.Duration
	// Logger is told what needs a person's attention; nil discards it.
	Logger *slog.Logger
	// Random makes IDs and delays random; nil is [rand.Uint64].
	Random func() uint64
}

func (c Config) withDefaults() Config {
	if c.Worker == "" {
		c.Worker = workerName()
	}
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	if c.Retry == (retry.Policy{}) {
		c.Retry = retry.TaskPolicy()
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	const least = time.Millisecond
	if c.Lease != 0 && c.Lease < least || c.Poll != 0 && c.Poll < least || c.Grace < 0 {
		errs = append(errs, fmt.Errorf("%w: Lease is %s, Poll %s and Grace %s; they are 0 for the default, or 1 ms and more",
			ErrInvalid, c.Lease, c.Poll, c.Grace))
	}
	if err := c.Retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Retry: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

// workerName is a name that no other start of a process has.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64()>>32, 36)
}

// Queue submits tasks to a store and runs them. It is safe for concurrent use.
type Queue struct {
	store Store
	cfg   Config
	ids   IDs
	clock clock

	mu       sync.Mutex
	handlers map[string]handler
	ran      bool           // Run has been called: handlers stay as they are
	soon     chan time.Time // something is due then
	told     chan struct{}  // tasks may have been told to stop
}

// New returns a queue on a store, which stays the caller's to close. It starts
// nothing. It panics if the configuration is not valid.
func New(store Store, cfg Config) *Queue {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return &Queue{
		store: store, cfg: cfg, ids: IDs{Random: cfg.Random}, clock: newClock(),
		handlers: make(map[string]handler), soon: make(chan time.Time, 1), told: make(chan struct{}, 1),
	}
}

// Submit accepts tasks of any kinds, all or none, and returns when they are
// durable. Payloads are bytes here; see [Submit] for one of a Go value.
func (q *Queue) Submit(ctx context.Context, specs ...Spec) ([]Receipt, error) {
	now := q.clock.now()
	tasks := make([]NewTask, len(specs))
	for i := range specs {
		tasks[i] = NewTask{ID: q.ids.New(now), Spec: specs[i]}
	}
	receipts, err := q.store.Submit(ctx, now, tasks)
	for i := range specs {
		q.dueAt(specs[i].RunAt)
		q.dueAt(specs[i].Deadline)
	}
	return receipts, err
}

// Submit accepts one task of a kind, whose payload is args in JSON.
func Submit[T any](ctx context.Context, q *Queue, kind string, args T, spec Spec) (Receipt, error) {
	payload, err := json.Marshal(args)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: payload of a task of kind %q: %w", ErrInvalid, kind, err)
	}
	spec.Kind, spec.Payload = kind, payload
	receipts, err := q.Submit(ctx, spec)
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// Get returns a task. Errors: ErrNotFound.
func (q *Queue) Get(ctx context.Context, id ID) (Task, error) {
	found, err := q.store.Find(ctx, Filter{IDs: []ID{id}}, Page{})
	if err != nil {
		return Task{}, err
	}
	if len(found) == 0 {
		return Task{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return found[0], nil
}

// Find yields the tasks that a filter finds, the oldest first, reading them a
// page at a time: what changes meanwhile may be seen as it was before or after.
func (q *Queue) Find(ctx context.Context, f Filter) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		const size = 100
		for page := (Page{Limit: size}); ; {
			found, err := q.store.Find(ctx, f, page)
			if err != nil {
				yield(Task{}, err)
				return
			}
			for i := range found {
				if !yield(found[i], nil) {
					return
				}
			}
			if len(found) < size {
				return
			}
			page.After = found[size-1].ID
		}
	}
}

// Why says why a task waits, the binding reason first.
func (q *Queue) Why(ctx context.Context, id ID) ([]Reason, error) {
	return q.store.Explain(ctx, q.clock.now(), id)
}

// Command does something to all tasks that a filter finds; see [Command].
func (q *Queue) Command(ctx context.Context, c Command) (int, error) {
	n, err := q.store.Command(ctx, q.clock.now(), c)
	q.dueAt(q.clock.now())
	signal(q.told)
	return n, err
}

// Configure changes what is set for a queue; see [Settings].
func (q *Queue) Configure(ctx context.Context, name string, s Settings) error {
	return q.store.Configure(ctx, q.clock.now(), name, s)
}

// Stats counts.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx, q.clock.now()) }

// dueAt says that something is due at a time, so that the tender of this
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

// signal sends a signal unless there is one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
