package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
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
