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
	"github.com/stintgo/stint/queue"
)

// errDone ends what this package has started.
var errDone = errors.New("queuetest: done")

// Start runs a queue in the background, on a scheduler of so many slots, until
// the test ends or stop is called, which returns when Run has. An error of Run
// fails the test.
func Start(tb testing.TB, q *queue.Queue, slots int, queues ...string) (stop func()) {
	tb.Helper()
	stop = sync.OnceFunc(start(tb, q, slots, queues...))
	tb.Cleanup(stop)
	return stop
}

// start is Start for callers that call stop, once.
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

// Sleep lets time pass, and returns when all has happened that this brings. It
// is for bubbles.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// How much time Drain lets pass: more than tasks need that end, and an end to
// those that never do.
const (
	drainMost = 400 * 24 * time.Hour
	workMost  = 24 * time.Hour // with something running, or a rate used up
)

// Drain works on the tasks of all queues, one at a time and in their order, until
// none is left that goes on by itself: what is finished, paused, held by those or
// without a handler stays. Time passes as far as delays, retries and rates need
// it. Handlers that wait for each other's tasks never end here: [Start] has more
// than one slot.
//
// It is for bubbles. It ends the test if tasks go on for ever: if a handler does
// not return within a day, or if there is work after 400 days, as there is of
// tasks that are always snoozed.
func Drain(tb testing.TB, q *queue.Queue) {
	tb.Helper()
	end := now().Add(drainMost)
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
			Sleep(due.Sub(now()))
		}
		if now().After(end) {
			tb.Fatalf("the tasks are not done in %s%s", drainMost, lives(unfinished(tb, q)))
		}
	}
}

// workOn works on queues until nothing runs, and nothing waits for what passes.
func workOn(tb testing.TB, q *queue.Queue, queues []string) {
	tb.Helper()
	defer start(tb, q, 1, queues...)() // also if the test ends here
	end := now().Add(workMost)
	synctest.Wait()
	for wait := time.Millisecond; working(tb, q, queues); wait = min(2*wait, time.Second) {
		if now().After(end) {
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

// outlook returns the queues with unfinished tasks, without those that have been
// worked on until they rest, and when the first of the scheduled tasks is due.
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

// working reports whether tasks of queues that are being worked on change
// without anything that comes from outside, and soon.
func working(tb testing.TB, q *queue.Queue, queues []string) bool {
	tb.Helper()
	for _, task := range unfinished(tb, q) {
		if slices.Contains(queues, task.Queue) && goesOn(tb, q, &task) {
			return true
		}
	}
	return false
}

// goesOn reports whether a task runs, or waits for what passes.
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

// lasts reports whether a reason is there until somebody does something.
func lasts(r queue.Reason) bool {
	switch r.Code {
	case queue.CodeNoWorker, queue.CodeTaskPaused, stint.Code(queue.HoldQueuePaused),
		stint.Code(queue.HoldDependency), stint.Code(queue.HoldGroup), stint.Code(queue.HoldKey):
		return true
	default:
		return false
	}
}
