package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// inMemory returns a queue that loses its tasks with the process. run starts a Run on a
// number of slots, which stop ends.
func inMemory(cfg queue.Config) (q *queue.Queue, run func(slots int) (stop func())) {
	q = queue.New(memstore.New(memstore.Config{}), cfg)
	return q, func(slots int) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx, stint.New(slots, stint.Config{})) }()
		return func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				panic(err)
			}
		}
	}
}

// Tasks come after others: each is prepared, which names it, and all are
// submitted in one step.
func ExampleQueue_Submit() {
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	q.Handle("step", func(_ context.Context, a *queue.Attempt) error {
		fmt.Println(string(a.Payload))
		return nil
	})
	defer run(4)()

	extract := q.Prepare(queue.Spec{Kind: "step", Payload: []byte("extract")})
	check := q.Prepare(queue.Spec{
		Kind: "step", Payload: []byte("check"), Options: queue.Options{After: []queue.ID{extract.ID}},
	})
	load := q.Prepare(queue.Spec{
		Kind: "step", Payload: []byte("load"), Options: queue.Options{After: []queue.ID{extract.ID, check.ID}},
	})
	if _, err := q.Submit(ctx, extract, check, load); err != nil {
		panic(err)
	}
	if _, err := q.Wait(ctx, load.ID); err != nil {
		panic(err)
	}
	// Output:
	// extract
	// check
	// load
}

// A task that comes after any outcome of others finds what became of them.
func ExampleQueue_Predecessors() {
	const (
		checkKind  queue.Kind[string]   = "check"
		reportKind queue.Kind[struct{}] = "report"
	)
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	checkKind.Handle(q, func(_ context.Context, j *queue.Job[string]) error {
		if j.Args == "" {
			return retry.Permanent(errors.New("nothing to check"))
		}
		return j.Return(len(j.Args))
	})
	reportKind.Handle(q, func(ctx context.Context, j *queue.Job[struct{}]) error {
		before, err := q.Predecessors(ctx, j.Task)
		if err != nil {
			return err
		}
		for _, p := range before {
			n, err := queue.Result[int](p.Task)
			fmt.Println(p.State, n, err != nil)
		}
		return nil
	})
	defer run(4)()

	one, _ := checkKind.Prepare(q, "text", queue.Options{})
	other, _ := checkKind.Prepare(q, "", queue.Options{})
	report, _ := reportKind.Prepare(q, struct{}{}, queue.Options{AfterAny: []queue.ID{one.ID, other.ID}})
	if _, err := q.Submit(ctx, one, other, report); err != nil {
		panic(err)
	}
	if _, err := q.Wait(ctx, report.ID); err != nil {
		panic(err)
	}
	// Output:
	// succeeded 4 false
	// dead 0 true
}

// A batch is a set of tasks with one that follows when all are finished, whatever
// became of them.
func ExampleQueue_SubmitBatch() {
	const (
		resizeKind queue.Kind[string]   = "resize"
		reportKind queue.Kind[struct{}] = "report"
	)
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	resizeKind.Handle(q, func(_ context.Context, j *queue.Job[string]) error {
		if strings.HasSuffix(j.Args, ".txt") {
			return retry.Permanent(fmt.Errorf("%s is not a picture", j.Args))
		}
		return nil
	})
	reportKind.Handle(q, func(ctx context.Context, j *queue.Job[struct{}]) error {
		counts, err := q.Count(ctx, queue.Filter{Batch: j.ID})
		if err != nil {
			return err
		}
		return j.Return(fmt.Sprintf("%d resized, %d failed", counts[queue.Succeeded], counts[queue.Dead]))
	})
	defer run(4)()

	var pictures []queue.NewTask
	for _, name := range []string{"ann.jpg", "bob.png", "notes.txt"} {
		task, err := resizeKind.Prepare(q, name, queue.Options{})
		if err != nil {
			panic(err)
		}
		pictures = append(pictures, task)
	}
	report, _ := reportKind.Prepare(q, struct{}{}, queue.Options{})
	if _, err := q.SubmitBatch(ctx, report, pictures...); err != nil {
		panic(err)
	}
	task, err := q.Wait(ctx, report.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(queue.Result[string](task))
	// Output:
	// 2 resized, 1 failed <nil>
}

// Tasks of a group run one after the other in the order of their submission,
// however many slots there are: the events of one customer, say.
func ExampleOptions_group() {
	const eventKind queue.Kind[string] = "event"
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	eventKind.Handle(q, func(_ context.Context, j *queue.Job[string]) error {
		fmt.Println(j.Group, j.Args)
		return nil
	})
	var last queue.Receipt
	for _, event := range []string{"signs up", "orders", "pays"} {
		var err error
		if last, err = eventKind.Submit(ctx, q, event, queue.Options{Group: "customer 17"}); err != nil {
			panic(err)
		}
	}
	defer run(8)()
	if _, err := q.Wait(ctx, last.ID); err != nil {
		panic(err)
	}
	// Output:
	// customer 17 signs up
	// customer 17 orders
	// customer 17 pays
}

// The same Unique is the same task, for as long as it is remembered.
func ExampleOptions_unique() {
	const sendKind queue.Kind[string] = "send"
	ctx := context.Background()
	q, _ := inMemory(queue.Config{})
	once := queue.Options{Unique: "invoice 4711"}
	first, err := sendKind.Submit(ctx, q, "invoice", once)
	if err != nil {
		panic(err)
	}
	second, err := sendKind.Submit(ctx, q, "invoice", once)
	if err != nil {
		panic(err)
	}
	fmt.Println(second.ID == first.ID, first.Existing, second.Existing)
	// Output:
	// true false true
}

// Middleware is around the handlers of all kinds.
func ExampleQueue_Use() {
	const mailKind queue.Kind[string] = "mail"
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	q.Use(func(next queue.Handler) queue.Handler {
		return func(ctx context.Context, a *queue.Attempt) error {
			err := next(ctx, a)
			fmt.Printf("%s of %s: %v\n", a.Kind, a.Key, err)
			return err
		}
	})
	mailKind.Handle(q, func(_ context.Context, j *queue.Job[string]) error {
		return retry.Permanent(fmt.Errorf("%s cannot be reached", j.Args))
	})
	defer run(1)()
	receipt, err := mailKind.Submit(ctx, q, "ann@example.com", queue.Options{Key: "tenant 7"})
	if err != nil {
		panic(err)
	}
	task, err := q.Wait(ctx, receipt.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(task.State)
	// Output:
	// mail of tenant 7: ann@example.com cannot be reached
	// dead
}

// One task is paused, resumed, cancelled and retried by its ID, and many by a filter.
func ExampleQueue_Cancel() {
	const reportKind queue.Kind[string] = "report"
	ctx := context.Background()
	q, _ := inMemory(queue.Config{})
	report, err := reportKind.Submit(ctx, q, "July", queue.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(q.Cancel(ctx, report.ID))
	fmt.Println(errors.Is(q.Pause(ctx, report.ID), queue.ErrState))
	fmt.Println(q.Retry(ctx, report.ID))
	fmt.Println(q.Command(ctx, queue.Command{
		Do: queue.OrderCancel, Filter: queue.Filter{Kind: "report"}, By: "an operator", Reason: "wrong month",
	}))
	fmt.Println(errors.Is(q.Cancel(ctx, q.NewID()), queue.ErrNotFound))
	// Output:
	// <nil>
	// true
	// <nil>
	// 1 <nil>
	// true
}

// Dead letters are listed with their errors, and retried or purged by a filter.
// Config.OnDead is called with each of them.
func ExampleQueue_Dead() {
	ctx := context.Background()
	q, run := inMemory(queue.Config{})
	q.Handle("charge", func(context.Context, *queue.Attempt) error {
		return retry.Permanent(errors.New("the card has expired"))
	})
	defer run(1)()
	charge := q.Prepare(queue.Spec{Kind: "charge"})
	if _, err := q.Submit(ctx, charge); err != nil {
		panic(err)
	}
	if _, err := q.Wait(ctx, charge.ID); err != nil {
		panic(err)
	}
	for task, err := range q.Dead(ctx, queue.Filter{Error: "expired"}) {
		if err != nil {
			panic(err)
		}
		for _, e := range task.Errors() {
			fmt.Println(task.Kind, e.On, e.Detail)
		}
	}
	fmt.Println(q.PurgeDead(ctx, "an operator", queue.Filter{Kind: "charge"}))
	// Output:
	// charge fail the card has expired
	// 1 <nil>
}
