package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"

	"github.com/stintgo/stint/bench/measure"
)

// kind is the kind of all tasks.
const kind queue.Kind[args] = "bench"

const (
	batch   = 1000
	callers = 64
	workers = 64
	kept    = 1000 // tasks that have succeeded

	busyKey  = "busy" // has a limit of 1
	busyPart = 10     // one task of ten has it
)

type args struct {
	Text string `json:"text"`
}

// newArgs are a hundred bytes as JSON.
func newArgs() args { return args{strings.Repeat("x", 89)} }

// filled submits n tasks in batches, and returns the tasks per second. busy gives
// some of them busyKey, and a higher tier than the others, so that they would start first.
func filled(q *queue.Queue, n int, busy bool) (rate float64, err error) {
	if busy {
		if err := limitBusy(q, 1); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for left := n; left > 0; left -= batch {
		tasks := make([]queue.NewTask, min(left, batch))
		for i := range tasks {
			o := queue.Options{}
			if busy && i%busyPart == 0 {
				o.Key, o.Tier = busyKey, stint.High
			}
			if tasks[i], err = kind.Prepare(q, newArgs(), o); err != nil {
				return 0, err
			}
		}
		if _, err := q.Submit(context.Background(), tasks...); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	there, err := pending(q)
	if err == nil && there != n {
		err = fmt.Errorf("%d tasks are pending, want %d", there, n)
	}
	return float64(n) / took.Seconds(), err
}

// limitBusy sets the limit of busyKey.
func limitBusy(q *queue.Queue, limit int) error {
	return q.Change(context.Background(), "default", queue.Change{Key: busyKey, Set: queue.Settings{Max: limit}})
}

// keepFew makes a store forget finished tasks as it goes: one that has been worked on
// would have more to forget than a new one.
func keepFew(q *queue.Queue) error {
	settings := queue.Settings{Keep: queue.Retention{Count: kept}}
	return q.Configure(context.Background(), "default", settings)
}

// lives submits n tasks while as many are worked on, and returns how many went
// in and out in a second. Each handler waits until a task has come in for its own:
// with others pending the workers would have done many more tasks by the end. A task of
// busyKey keeps one worker until then.
func lives(q *queue.Queue, n int) (rate float64, err error) {
	if err := keepFew(q); err != nil {
		return 0, err
	}
	before, err := pending(q)
	if err != nil {
		return 0, err
	}
	var handled atomic.Int64
	enough := make(chan struct{})
	came := make(chan struct{}, n)
	kind.Handle(q, func(_ context.Context, j *queue.Job[args]) error {
		if j.Key == busyKey {
			<-enough
			return queue.Snooze(time.Minute)
		}
		select {
		case <-came:
		case <-enough: // it is one more
		}
		if handled.Add(1) == int64(n) {
			close(enough)
		}
		return nil
	})
	took, err := runUntil(q, enough, func() error { return submitted(q, n, came) })
	if err != nil {
		return 0, err
	}
	after, err := pending(q)
	if want := before + n - int(handled.Load()); err == nil && after != want {
		err = fmt.Errorf("%d tasks are pending, want %d", after, want)
	}
	return float64(n) / took.Seconds(), err
}

// drained works on n tasks that are pending, and returns the tasks per second.
func drained(q *queue.Queue, n int) (rate float64, err error) {
	if err := errors.Join(keepFew(q), limitBusy(q, workers)); err != nil {
		return 0, err
	}
	var handled atomic.Int64
	enough := make(chan struct{})
	kind.Handle(q, func(context.Context, *queue.Job[args]) error {
		if handled.Add(1) == int64(n) {
			close(enough)
		}
		return nil
	})
	took, err := runUntil(q, enough, func() error { return nil })
	if err != nil {
		return 0, err
	}
	return float64(n) / took.Seconds(), nil
}

// runUntil has workers work on the queue until enough is closed, and returns how long that
// takes. submit is called when they have begun.
func runUntil(q *queue.Queue, enough <-chan struct{}, submit func() error) (took time.Duration, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- q.Run(ctx, stint.New(workers, stint.Config{})) }()
	if err := submit(); err != nil {
		return 0, err
	}
	select {
	case <-enough:
	case err := <-ended:
		return 0, fmt.Errorf("the queue ended early: %w", err)
	}
	took = time.Since(start)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return 0, err
	}
	return took, nil
}

// submitted has many callers submit n tasks, and sends to came for each.
func submitted(q *queue.Queue, n int, came chan<- struct{}) error {
	failed := make(chan error, callers)
	measure.Spread(n, callers, func(_, share int) int {
		for range share {
			if _, err := kind.Submit(context.Background(), q, newArgs(), queue.Options{}); err != nil {
				failed <- err
				return 0
			}
			came <- struct{}{}
		}
		return share
	})
	close(failed)
	return <-failed
}

// pending is how many tasks are not finished.
func pending(q *queue.Queue) (int, error) {
	stats, err := q.Stats(context.Background())
	if err != nil {
		return 0, err
	}
	n := 0
	for state, count := range stats.Queues["default"].States {
		switch state {
		case queue.Succeeded:
		case queue.Dead, queue.Cancelled:
			return 0, fmt.Errorf("%d tasks are %s", count, state)
		default:
			n += count
		}
	}
	return n, nil
}
