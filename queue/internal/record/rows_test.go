package record_test

import (
	"bytes"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// noon is the current time in all tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.UTC)

// typical is the row of a task that runs for the first time, with 100 bytes of
// payload.
func typical() *record.Row {
	return &record.Row{
		Task: queue.Task{
			ID: numbered(0xab),
			Spec: queue.Spec{
				Kind:    "send_invoice",
				Payload: bytes.Repeat([]byte("0123456789"), 10),
				Options: queue.Options{
					Queue: "default",
					Key:   "tenant-4711",
				},
			},
			State:     queue.Running,
			Lease:     queue.Lease{Worker: "host-a/4242", Token: 17},
			Submitted: noon,
			Changed:   noon.Add(time.Millisecond),
			Steps: []queue.Step{
				{At: noon, On: queue.OnSubmit, To: queue.Waiting},
				{At: noon.Add(time.Millisecond), On: queue.OnClaim, To: queue.Running, By: "host-a/4242", Token: 17},
			},
		},
		Seq: 1_000_000,
	}
}

// full returns a row in which every field is set.
func full() *record.Row {
	return &record.Row{
		Task: queue.Task{
			ID: numbered(1),
			Spec: queue.Spec{
				Kind:    "send",
				Payload: []byte(`{"to":"ä"}`),
				Options: queue.Options{
					Queue:       "mail",
					Key:         "tenant",
					Group:       "thread",
					Unique:      "mail-7",
					Tier:        stint.Lowest,
					After:       []queue.ID{numbered(2), numbered(3)},
					Batch:       numbered(4),
					AfterBatch:  numbered(5),
					AfterAny:    []queue.ID{numbered(6)},
					UniqueFor:   time.Hour,
					RunAt:       noon.Add(time.Second),
					Deadline:    noon.Add(time.Hour),
					Timeout:     90 * time.Second,
					MaxAttempts: 5,
					MaxCrashes:  200,
					Labels:      map[string]string{"zone": "b", "app": "shop"},
					Trace:       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
				},
			},
			State:      queue.Running,
			Order:      queue.OrderPause,
			Lease:      queue.Lease{Worker: "host-a/1", Token: 300},
			Failures:   1,
			Crashes:    2,
			Progress:   queue.Progress{Done: 10, Total: 1 << 40, Note: "half"},
			Checkpoint: []byte{0, 1, 2},
			Result:     []byte("ok"),
			Error:      "timeout",
			Submitted:  noon,
			Changed:    time.Unix(0, 0).UTC(),
			Steps: []queue.Step{
				{At: noon, On: queue.OnSubmit, To: queue.Scheduled, By: "api"},
				{
					At: noon.Add(-time.Second), On: queue.OnFailure, To: queue.Scheduled,
					By: "host-b/9", Token: 299, Detail: "timeout",
				},
				{},
			},
		},
		Seq: 128, OrderBy: "alice", OrderReason: "too loud", Remote: 30 * time.Second,
		RunAtEdited: time.Unix(0, 1).UTC(), DeadlineEdited: time.Unix(0, -2).UTC(),
	}
}

func numbered(n byte) queue.ID {
	return queue.ID{0x01, 0x9a, 0x9f, 0x3a, 0x1c, 0x00, 0x7a, 0xbc, 0x8d, 0xef, 15: n}
}
