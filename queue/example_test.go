package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// Tasks of a kind are done by its handler, on the slots of a scheduler. One that
// fails is tried again; one that cannot succeed is dead at once.
func Example() {
	type greeting struct{ To string }
	const greet queue.Kind[greeting] = "greet"

	q := queue.New(memstore.New(memstore.Config{}), queue.Config{
		Retry: retry.Policy{Base: time.Millisecond},
	})
	done := make(chan struct{})
	calls := 0
	greet.Handle(q, func(_ context.Context, j *queue.Job[greeting]) error {
		if j.Args.To == "" {
			return retry.Permanent(errors.New("nobody to greet"))
		}
		if calls++; calls == 1 {
			return errors.New("not in the mood")
		}
		defer close(done)
		fmt.Println("hello,", j.Args.To)
		return nil
	})

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, stint.New(1, stint.Config{})) }()

	nobody, err := greet.Submit(ctx, q, greeting{}, queue.Options{Tier: stint.High})
	if err != nil {
		panic(err)
	}
	gopher, err := greet.Submit(ctx, q, greeting{To: "gopher"}, queue.Options{})
	if err != nil {
		panic(err)
	}
	<-done
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) { // when the outcomes are known to the store
		panic(err)
	}

	for _, id := range []queue.ID{nobody.ID, gopher.ID} {
		task, err := q.Get(context.Background(), id)
		if err != nil {
			panic(err)
		}
		fmt.Println(task.State, "after", task.Failures, "failures")
	}
	// Output:
	// hello, gopher
	// dead after 1 failures
	// succeeded after 1 failures
}

// A task that waits says why, with what a person needs in order to act on it.
func ExampleQueue_Why() {
	ctx := context.Background()
	q := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	build := q.Prepare(queue.Spec{Kind: "build"})
	deploy := q.Prepare(queue.Spec{Kind: "deploy", Options: queue.Options{After: []queue.ID{build.ID}}})
	if _, err := q.Submit(ctx, build, deploy); err != nil {
		panic(err)
	}
	why, err := q.Why(ctx, deploy.ID)
	if err != nil {
		panic(err)
	}
	for _, r := range why {
		if r.Code == queue.CodeNoWorker {
			fmt.Println("nobody handles tasks of kind", r.What)
		} else {
			fmt.Println("held by a", r.Code, "that is", r.State)
		}
	}
	// Output:
	// held by a dependency that is waiting
	// nobody handles tasks of kind deploy
}

// A schedule is declared by each process that runs the queue, at its start, and
// ticks once for all of them.
func ExampleQueue_Schedule() {
	const report queue.Kind[struct{}] = "report"
	ctx := context.Background()
	q := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	report.Handle(q, func(_ context.Context, j *queue.Job[struct{}]) error {
		day, ok := j.Tick() // not today, if it is tried again tomorrow
		if !ok {
			return retry.Permanent(errors.New("it is for schedules"))
		}
		fmt.Println("the report of", day.Format(time.DateOnly))
		return nil
	})
	task, err := report.Spec(struct{}{}, queue.Options{MaxAttempts: 5})
	if err != nil {
		panic(err)
	}
	nightly := queue.Schedule{
		Name: "nightly report", Cron: "30 4 * * mon-fri", Zone: "Europe/Berlin",
		Missed: queue.MissedOnce, // the default: after a standstill, one report
		Task:   task,
	}
	for range 2 { // the second changes nothing
		if err := q.Schedule(ctx, nightly); err != nil {
			panic(err)
		}
	}
	all, err := q.Schedules(ctx)
	if err != nil {
		panic(err)
	}
	for _, s := range all {
		fmt.Println(s.Name, "comes next at", s.Next.Format(time.TimeOnly))
	}

	nightly.Cron = "30 4 * *"
	fmt.Println(q.Schedule(ctx, nightly) != nil)
	// Output:
	// nightly report comes next at 04:30:00
	// true
}
