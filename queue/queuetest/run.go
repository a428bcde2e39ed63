package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// errDone is the cause with which this package ends Run.
var errDone = errors.New("queuetest: done")

// Start runs a queue in the background, on a scheduler with the given number of slots,
// until the test ends or stop is called. stop returns when Run has returned. An error of
// Run fails the test.
func Start(tb testing.TB, q *queue.Queue, slots int, queues ...string) (stop func()) {
	tb.Helper()
	stop = sync.OnceFunc(start(tb, q, slots, queues...))
	tb.Cleanup(stop)
	return stop
}

// start is Start without the cleanup: the caller must call stop exactly once.
func start(tb testing.TB, q *queue.Queue, slots int, queues ...string) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, stint.New(slots, stint.Config{}), queues...) }()
	return func() {
		tb.Helper()
		cancel(errDone)
		if err := <-ended; fmt.Sprint(err) != errDone.Error() {
			tb.Errorf("run: %v", err)
		}
	}
}

// Sleep sleeps for d, and then waits until every other goroutine of the bubble is
// blocked. It works only in a bubble.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The limits of virtual time after which Drain ends the test.
const (
	drainMost = 400 * 24 * time.Hour // in all
	workMost  = 24 * time.Hour       // while a task runs or waits for a rate
)

// Drain runs the tasks of all queues, one at a time and in their order, until no task can
// make progress by itself: the rest is finished, paused, held by such tasks, or without a
// handler. The time advances as delays, retries and rates require. Handlers that wait for
// other tasks block forever here, because Drain has one slot; use [Start] for them.
//
// It works only in a bubble. It ends the test if a handler does not return within a day,
// or if tasks are left after 400 days, for example a task that is always snoozed.
func Drain(tb testing.TB, q *queue.Queue) {
	tb.Helper()
	end := clock.Now().Add(drainMost)
	for {
		queues, _ := outlook(tb, q, nil)
		if len(queues) == 0 {
			return
		}
		workOn(tb, q, queues)
		others, due := outlook(tb, q, queues)
		if len(others) == 0 {
			if due.IsZero() {
				return
			}
			Sleep(due.Sub(clock.Now()))
		}
		if clock.Now().After(end) {
			tb.Fatalf("the tasks are not done in %s%s", drainMost, lives(unfinished(tb, q)))
		}
	}
}

// workOn runs queues until no task of them runs or waits for something temporary.
func workOn(tb testing.TB, q *queue.Queue, queues []string) {
	tb.Helper()
	defer start(tb, q, 1, queues...)() // also if the test ends here
	end := clock.Now().Add(workMost)
	synctest.Wait()
	for wait := time.Millisecond; working(tb, q, queues); wait = min(2*wait, time.Second) {
		if clock.Now().After(end) {
			tb.Fatalf("the tasks do not come to rest in %s%s", workMost, lives(unfinished(tb, q)))
		}
		Sleep(wait)
	}
}

// unfinished returns the tasks that are neither finished nor paused.
func unfinished(tb testing.TB, q *queue.Queue) []queue.Task {
	tb.Helper()
	return All(tb, q, queue.Filter{
		States: []queue.State{queue.Scheduled, queue.Held, queue.Waiting, queue.Running},
	})
}

// outlook returns the queues with unfinished tasks, without those in rested, and the time
// at which the first scheduled task is due.
func outlook(tb testing.TB, q *queue.Queue, rested []string) (queues []string, due time.Time) {
	tb.Helper()
	for _, task := range unfinished(tb, q) {
		if !slices.Contains(rested, task.Queue) && !slices.Contains(queues, task.Queue) {
			queues = append(queues, task.Queue)
		}
		if task.State == queue.Scheduled && (due.IsZero() || task.RunAt.Before(due)) {
			due = task.RunAt
		}
	}
	return queues, due
}

// working reports whether a task of the given queues will soon make progress by itself.
func working(tb testing.TB, q *queue.Queue, queues []string) bool {
	tb.Helper()
	for _, task := range unfinished(tb, q) {
		if slices.Contains(queues, task.Queue) && goesOn(tb, q, &task) {
			return true
		}
	}
	return false
}

// goesOn reports whether a task runs, or waits only for something temporary.
func goesOn(tb testing.TB, q *queue.Queue, task *queue.Task) bool {
	tb.Helper()
	switch task.State {
	case queue.Running:
		return true
	case queue.Waiting, queue.Held:
		why, err := q.Why(tb.Context(), task.ID)
		if err != nil {
			tb.Fatalf("why task %s waits: %v", task.ID, err)
		}
		return !slices.ContainsFunc(why, lasts)
	default:
		return false
	}
}

// lasts reports whether a reason stays until an operator, another task, a new handler or a
// repair of the store removes it.
func lasts(r queue.Reason) bool {
	switch r.Code {
	case queue.CodeNoWorker, queue.CodeTaskPaused, stint.Code(queue.HoldQueuePaused),
		stint.Code(queue.HoldDependency), stint.Code(queue.HoldGroup), stint.Code(queue.HoldKey),
		stint.Code(queue.HoldKeyTotal), stint.Code(queue.HoldSuspect), stint.Code(queue.HoldDamaged):
		return true
	default:
		return false
	}
}
