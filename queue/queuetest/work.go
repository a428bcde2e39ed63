package queuetest

import (
	"cmp"
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

// Given is the task of [Work], besides its payload. The zero value is a task of kind
// "test" in [queue.DefaultQueue] without a checkpoint.
type Given struct {
	Kind string // "test" if empty
	// Options are those of the task. Work makes the attempt at once, so it ends the test if
	// RunAt, After, AfterAny or AfterBatch is set.
	Options    queue.Options
	Checkpoint []byte // of an earlier attempt; nil if there was none
}

// Work makes one attempt with the handler fn at a task whose payload is args in JSON, as
// a worker would, and returns the task afterwards: Succeeded with its Result, Scheduled
// after a snooze or a failure that allows another attempt, or Dead; with its Error,
// Checkpoint, Progress and Steps.
//
// Work returns after the handler has. It works inside and outside of a bubble.
func Work[T any](
	tb testing.TB, fn func(context.Context, *queue.Job[T]) error, args T, given Given,
) queue.Task {
	tb.Helper()
	if o := given.Options; !o.RunAt.IsZero() || len(o.After)+len(o.AfterAny) > 0 || !o.AfterBatch.IsZero() {
		tb.Fatalf("queuetest.Work makes the attempt at once: unset RunAt, After, AfterAny and AfterBatch, " +
			"or submit the task to a queue of New and call Drain")
	}
	given.Kind = cmp.Or(given.Kind, "test")
	given.Options.Queue = cmp.Or(given.Options.Queue, queue.DefaultQueue)
	store := memstore.New(memstore.Config{})
	defer func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	}()
	q := On(tb, store, queue.Config{})
	id := admit(tb, store, args, &given)

	ctx, cancel := context.WithCancelCause(tb.Context())
	defer cancel(nil)
	queue.Kind[T](given.Kind).Handle(q, func(ctx context.Context, j *queue.Job[T]) error {
		defer cancel(errDone) // before the slot is free, so that there is no second attempt
		return fn(ctx, j)
	})
	if err := q.Run(ctx, stint.New(1, stint.Config{}), given.Options.Queue); fmt.Sprint(err) != errDone.Error() {
		tb.Errorf("run: %v", err)
	}
	task, err := q.Get(context.WithoutCancel(tb.Context()), id)
	if err != nil {
		tb.Fatal(err)
	}
	return task
}

// admit submits the task, and saves the checkpoint if there is one.
func admit(tb testing.TB, store queue.Store, args any, given *Given) queue.ID {
	tb.Helper()
	payload, err := json.Marshal(args)
	if err != nil {
		tb.Fatalf("the payload: %v", err)
	}
	ids := queue.IDs{Random: random(1)}
	id := ids.New(clock.Now())
	task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: given.Kind, Payload: payload, Options: given.Options}}
	if _, err := store.Submit(tb.Context(), clock.Now(), []queue.NewTask{task}); err != nil {
		tb.Fatalf("submit: %v", err)
	}
	if given.Checkpoint != nil {
		keep(tb, store, id, given)
	}
	return id
}

// keep makes an earlier attempt that saves the checkpoint and releases the task.
func keep(tb testing.TB, store queue.Store, id queue.ID, given *Given) {
	tb.Helper()
	claimed, err := store.Claim(tb.Context(), clock.Now(), queue.Claim{
		Worker: "before", Queue: given.Options.Queue, Kinds: []string{given.Kind}, Max: 1, Lease: time.Hour,
	})
	if err != nil || len(claimed.Tasks) != 1 {
		tb.Fatalf("an attempt before: %d tasks, error %v", len(claimed.Tasks), err)
	}
	answers, err := store.Settle(tb.Context(), clock.Now(), []queue.Outcome{{
		ID: id, Token: claimed.Tasks[0].Lease.Token, Kind: queue.OutcomeRelease, Checkpoint: given.Checkpoint,
	}})
	if err != nil || answers[0] != nil {
		tb.Fatalf("an attempt before: %v, %v", answers, err)
	}
}
