package queuetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// Work makes one attempt with the handler fn at a task whose payload is args in JSON, as
// a worker would, and returns the task afterwards: Succeeded with its Result, Scheduled
// after a snooze or a failure that allows another attempt, or Dead; with its Error,
// Checkpoint, Progress and Steps. The task gets its [queue.Spec] and the Checkpoint of an
// earlier attempt from like; the zero Task is valid.
//
// Work returns after the handler has. It works inside and outside of a bubble.
func Work[T any](
	tb testing.TB, fn func(context.Context, *queue.Job[T]) error, args T, like queue.Task,
) queue.Task {
	tb.Helper()
	store := memstore.New(memstore.Config{})
	defer func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	}()
	q := On(tb, store, queue.Config{})
	id := admit(tb, store, args, &like)

	ctx, cancel := context.WithCancelCause(tb.Context())
	defer cancel(nil)
	queue.Kind[T](like.Kind).Handle(q, func(ctx context.Context, j *queue.Job[T]) error {
		defer cancel(errDone) // before the slot is free, so that there is no second attempt
		return fn(ctx, j)
	})
	if err := q.Run(ctx, stint.New(1, stint.Config{}), like.Queue); fmt.Sprint(err) != errDone.Error() {
		tb.Errorf("run: %v", err)
	}
	task, err := q.Get(context.WithoutCancel(tb.Context()), id)
	if err != nil {
		tb.Fatal(err)
	}
	return task
}

// admit submits a task that is due at once, with the checkpoint of like if it has one.
func admit(tb testing.TB, store queue.Store, args any, like *queue.Task) queue.ID {
	tb.Helper()
	payload, err := json.Marshal(args)
	if err != nil {
		tb.Fatalf("the payload: %v", err)
	}
	like.Payload, like.RunAt, like.After, like.AfterBatch = payload, time.Time{}, nil, queue.ID{}
	if like.Kind == "" {
		like.Kind = "test"
	}
	if like.Queue == "" {
		like.Queue = "default"
	}
	ids := queue.IDs{Random: random(1)}
	id := ids.New(clock.Now())
	if _, err := store.Submit(tb.Context(), clock.Now(), []queue.NewTask{{ID: id, Spec: like.Spec}}); err != nil {
		tb.Fatalf("submit: %v", err)
	}
	if like.Checkpoint != nil {
		keep(tb, store, id, like)
	}
	return id
}

// keep makes an earlier attempt that saves the checkpoint of like and releases the task.
func keep(tb testing.TB, store queue.Store, id queue.ID, like *queue.Task) {
	tb.Helper()
	claimed, err := store.Claim(tb.Context(), clock.Now(), queue.Claim{
		Worker: "before", Queue: like.Queue, Kinds: []string{like.Kind}, Max: 1, Lease: time.Hour,
	})
	if err != nil || len(claimed.Tasks) != 1 {
		tb.Fatalf("an attempt before: %d tasks, error %v", len(claimed.Tasks), err)
	}
	answers, err := store.Settle(tb.Context(), clock.Now(), []queue.Outcome{{
		ID: id, Token: claimed.Tasks[0].Lease.Token, Kind: queue.OutcomeRelease, Checkpoint: like.Checkpoint,
	}})
	if err != nil || answers[0] != nil {
		tb.Fatalf("an attempt before: %v, %v", answers, err)
	}
}
