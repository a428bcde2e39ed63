package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// A handler that a test calls without a queue has its task, and its reports can be read.
func TestC8_AttemptWithoutAQueueReports(t *testing.T) {
	j := &queue.Attempt{Task: queue.Task{Failures: 2}}
	if got := j.Reported(); got.Saved != 0 || got.Checkpoint != nil || got.Result != nil {
		t.Errorf("before anything is reported: %+v", got)
	}
	j.Report(queue.Progress{Done: 3, Total: 4})
	j.Save([]byte("at 2"))
	j.Save([]byte("at 3"))
	if err := j.Return([]int{1}); err != nil {
		t.Fatal(err)
	}
	got := j.Reported()
	if j.Failures != 2 || got.Progress != (queue.Progress{Done: 3, Total: 4}) ||
		string(got.Checkpoint) != "at 3" || got.Saved != 2 || string(got.Result) != "[1]" {
		t.Errorf("task %+v reported %+v", j.Task, got)
	}
}

func TestC8_SnoozeDelay(t *testing.T) {
	if d, ok := queue.SnoozeDelay(fmt.Errorf("later: %w", queue.Snooze(time.Minute))); d != time.Minute || !ok {
		t.Errorf("SnoozeDelay = %s, %t", d, ok)
	}
	if d, ok := queue.SnoozeDelay(errors.New("boom")); d != 0 || ok {
		t.Errorf("SnoozeDelay of another error = %s, %t", d, ok)
	}
}

// A store that settles an attempt in a transaction gets the delay of the next one exactly, whatever the system
// clock is set to: the time has a monotonic reading.
func TestC11_OutcomeOfATransactionHasADelay(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer func() { _ = store.Close() }()
	q := queue.New(store, queue.Config{})
	ctx, stop := context.WithCancel(t.Context())
	q.Handle("kind", func(_ context.Context, a *queue.Attempt) error {
		defer stop()
		for _, err := range []error{errors.New("a failure"), queue.Snooze(time.Hour)} {
			if o := a.Outcome(err); o.RunAt == o.RunAt.Round(0) { //nolint:contextcheck,staticcheck // == compares it
				t.Errorf("%v: the time %s has no monotonic reading", err, o.RunAt)
			}
		}
		if o := a.Outcome(nil); !o.RunAt.IsZero() { //nolint:contextcheck // the attempt has it
			t.Errorf("a success has the time %s", o.RunAt)
		}
		return nil
	})
	var ids queue.IDs
	task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "kind"}}
	if _, err := store.Submit(ctx, time.Now(), []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	if err := q.Run(ctx, stint.New(1, stint.Config{})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
