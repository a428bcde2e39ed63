package record

import (
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Row is all that a store writes down of a task.
//
// Two things of a task are not written. Its Holds follow from what other tasks
// do. And the end of its lease moves with every beat of its worker, which would
// cost a write each; whoever reads the row of a running task gives the lease a
// new end.
type Row struct {
	queue.Task
	// Seq is the number of the task's submission in its store. IDs are chosen by
	// those who submit, so they do not tell the order.
	Seq uint64
	// OrderBy and OrderReason are who gave Order, and why.
	OrderBy, OrderReason string
	// Remote is the length of a lease that outlives its store, because its worker
	// is in another process; 0 is one that does not.
	Remote time.Duration
	// RunAtEdited and DeadlineEdited are when a command last edited RunAt and Deadline;
	// zero if none did. The steps do not say which fields an edit changed.
	RunAtEdited, DeadlineEdited time.Time
}

// Head is the part of a row that decides when its task starts, or is forgotten.
// Fields are those of [Row].
type Head struct {
	ID     queue.ID
	Queue  string
	Kind   string
	Key    string
	Group  string
	Unique string
	Seq    uint64

	State    queue.State
	Tier     stint.Priority
	Order    queue.Trigger
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

// Row returns the row of which this is the head, without the rest. It shares After
// and AfterAny with it.
func (h *Head) Row() Row {
	return Row{
		Task: queue.Task{
			ID: h.ID,
			Spec: queue.Spec{
				Queue:      h.Queue,
				Kind:       h.Kind,
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
