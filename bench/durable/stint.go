package durable

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/memstore"
)

const kind = "bench"

// stintKind is the kind with the type of its payload.
const stintKind queue.Kind[args] = kind

// stintQueue is a queue as its documentation shows it: typed handlers, slots
// of a scheduler.
type stintQueue struct {
	turn  *turn
	store queue.Store
	queue *queue.Queue
	keyOf func() string // the key of the next task; nil for none

	stop  context.CancelFunc
	ended chan error // what Run returned
}

func openStint(t *turn) (keeper, error) {
	store, err := filestore.Open(filepath.Join(t.dir, "stint"), filestore.Config{})
	if err != nil {
		return nil, err
	}
	return newStintQueue(t, store), nil
}

func openStintMemory(t *turn) (keeper, error) {
	return newStintQueue(t, memstore.New(memstore.Config{})), nil
}

func newStintQueue(t *turn, store queue.Store) *stintQueue {
	t.Cleanup(func() { _ = store.Close() })
	return &stintQueue{turn: t, store: store, queue: queue.New(store, queue.Config{})}
}

func (s *stintQueue) key() string {
	if s.keyOf == nil {
		return ""
	}
	return s.keyOf()
}

func (s *stintQueue) submit(stamp int64) error {
	_, err := stintKind.Submit(context.Background(), s.queue, newArgs(stamp), queue.Options{Key: s.key()})
	return err
}

func (s *stintQueue) submitBatch(n int) error {
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		var err error
		tasks[i], err = stintKind.Prepare(s.queue, newArgs(0), queue.Options{Key: s.key()})
		if err != nil {
			return err
		}
	}
	_, err := s.queue.Submit(context.Background(), tasks...)
	return err
}

func (s *stintQueue) work(handled func(stamp int64)) error { return s.workIn(workers, handled) }

// workIn is work on a number of slots.
func (s *stintQueue) workIn(n int, handled func(stamp int64)) error {
	slots := stint.New(n, stint.Config{})
	s.turn.Cleanup(slots.Close)
	return s.workOn(slots, handled)
}

// workOn is work on slots, on some queues or the default one.
func (s *stintQueue) workOn(slots stint.Scheduler, handled func(stamp int64), queues ...string) error {
	stintKind.Handle(s.queue, func(_ context.Context, j *queue.Job[args]) error {
		handled(j.Args.Stamp)
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan error, 1)
	go func() { s.ended <- s.queue.Run(ctx, slots, queues...) }()
	s.turn.Cleanup(func() { _ = s.settled() }) // its error has been reported, if the turn came that far
	return nil
}

// settled ends Run, which then waits for the last outcomes: what Stats shows may
// not be durable yet.
func (s *stintQueue) settled() error {
	s.stop()
	err := <-s.ended
	s.ended <- err               // for the next call
	if err == context.Canceled { //nolint:errorlint // anything that is joined to it went wrong
		return nil
	}
	return err
}

func (s *stintQueue) unsettled() (int, error) { return s.unsettledIn("default") }

func (s *stintQueue) unsettledIn(queues ...string) (n int, err error) {
	stats, err := s.queue.Stats(context.Background())
	if err != nil {
		return 0, err
	}
	for _, name := range queues {
		for state, count := range stats.Queues[name].States {
			switch state {
			case queue.Dead, queue.Cancelled:
				return 0, fmt.Errorf("%d tasks are %s", count, state)
			case queue.Succeeded:
			default:
				n += count
			}
		}
	}
	return n, nil
}
