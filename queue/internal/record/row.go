package record

import (
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Row is everything that a store writes of a task.
//
// Two fields of the task are not written: Holds, which follow from other tasks, and the
// end of the lease, which moves with every heartbeat and would cost a write each time. A
// store that reads the row of a running task sets a new end of the lease.
type Row struct {
	queue.Task
	// Seq is the number of the task's submission in its store. IDs do not give the order
	// of submission, because clients choose them.
	Seq uint64
	// OrderBy and OrderReason are the author of Order and the reason.
	OrderBy, OrderReason string
	// Remote is the length of a lease that outlives its store because the worker is in
	// another process; 0 means that the lease ends with the store.
	Remote time.Duration
	// RunAtEdited and DeadlineEdited are the times at which a command last edited RunAt
	// and Deadline, or zero. They are separate because steps do not name the fields of an
	// edit.
	RunAtEdited, DeadlineEdited time.Time
}

// Header is the part of a row that decides when its task starts and when it is deleted. It
// is encoded before the body, so it can be read alone. Its fields are those of [Row].
type Header struct {
	ID     queue.ID
	Queue  string
	Kind   string
	Key    string
	Group  string
	Unique string
	Seq    uint64

	State    queue.State
	Tier     stint.Priority
	Order    queue.Order
	Failures int
	Crashes  int

	RunAt     time.Time
	Deadline  time.Time
	Submitted time.Time
	Changed   time.Time

	Batch      queue.ID
	AfterBatch queue.ID
	After      []queue.ID
	AfterAny   []queue.ID
}

// Row returns a row with the fields of h; the others are zero. It shares After and
// AfterAny with h.
func (h *Header) Row() Row {
	return Row{
		Task: queue.Task{
			ID: h.ID,
			Spec: queue.Spec{
				Kind: h.Kind,
				Options: queue.Options{
					Queue:      h.Queue,
					Key:        h.Key,
					Group:      h.Group,
					Unique:     h.Unique,
					Tier:       h.Tier,
					RunAt:      h.RunAt,
					Deadline:   h.Deadline,
					Batch:      h.Batch,
					AfterBatch: h.AfterBatch,
					After:      h.After,
					AfterAny:   h.AfterAny,
				},
			},
			State:     h.State,
			Order:     h.Order,
			Failures:  h.Failures,
			Crashes:   h.Crashes,
			Submitted: h.Submitted,
			Changed:   h.Changed,
		},
		Seq: h.Seq,
	}
}
