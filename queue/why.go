package queue

import (
	"encoding/json"
	"time"

	"github.com/stintgo/stint"
)

// HoldCode is the reason of a [Hold]. The codes are also those of [Reason].
type HoldCode string

// The holds.
const (
	// HoldDependency: a predecessor has not succeeded, or a task or batch that must be
	// finished is not. If State already lets this task start, the store is about to
	// release it.
	HoldDependency HoldCode = "dependency"
	// HoldForgotten: a predecessor was forgotten without success. The store is about to
	// cancel this task.
	HoldForgotten HoldCode = "forgotten"
	// HoldGroup: the task before it in its group is not finished.
	HoldGroup HoldCode = "group"
	// HoldKey: the running tasks of its key have reached their limit.
	HoldKey HoldCode = "key"
	// HoldKeyTotal: the running tasks of its key in all queues together have reached
	// their limit.
	HoldKeyTotal HoldCode = "key_total"
	// HoldKeyRate: the rate of its key allows no start now.
	HoldKeyRate HoldCode = "key_rate"
	// HoldQueuePaused: its queue is paused, or all queues are.
	HoldQueuePaused HoldCode = "queue_paused"
	// HoldSuspect: the task is a suspect, and another suspect of its queue runs. See
	// MaxCrashes of [Options].
	HoldSuspect HoldCode = "suspect"
	// HoldDamaged: the row of the task cannot be read, for example because of a damaged
	// disk. Error of the [Task] has the reason, and most other fields are unknown. The
	// row is not removed, and the store tries to read it about once a minute.
	HoldDamaged HoldCode = "damaged"
)

// The reasons of durable tasks besides those of package stint and the holds.
const (
	// CodeScheduled: its RunAt has not come.
	CodeScheduled stint.Code = "scheduled"
	// CodeNoWorker: no live worker handles its kind in its queue.
	CodeNoWorker stint.Code = "no_worker"
	// CodeTotal: the running tasks of all queues together have reached their limit, or
	// the free slots are reserved for queues that have waited longer.
	CodeTotal stint.Code = "total"
	// CodeTaskPaused: the task itself is paused.
	CodeTaskPaused stint.Code = "task_paused"
)

// Reason is one reason why a task waits. Code and the fields of [stint.Reason] are as
// documented there; the others apply to durable tasks.
type Reason struct {
	stint.Reason

	// What is the group, task or batch that the task waits for: dependency, forgotten,
	// group; for damaged, the error.
	What string `json:"what,omitempty"`
	// State is the state of the task that this one waits for.
	State State `json:"state,omitempty"`
	// Until is when the wait ends by itself: scheduled, rate, key_rate.
	Until time.Time `json:"until,omitzero"`
	// Failures is the number of failed attempts: scheduled.
	Failures int `json:"failures,omitempty"`
	// SetBy is the origin of the limit or the rate: max, total, cap, key, key_total,
	// rate, key_rate. For queue_paused it has Default alone, which is set if all queues
	// are paused.
	SetBy Origin `json:"set_by,omitzero"`
	// Queues are the queues whose running tasks count against the limit, at most the ten
	// with the most tasks, and their numbers: total, key_total.
	Queues map[string]int `json:"queues,omitempty"`
	// Holders are the tasks that hold the slots that the task waits for, at most ten:
	// key, key_total, max, total, suspect.
	Holders []ID `json:"holders,omitempty"`
	// LastSeen is the last worker that handled the kind, and the time of its heartbeat:
	// no_worker.
	LastSeen Seen `json:"last_seen,omitzero"`
}

// String returns r as JSON, for a log. The sentences of [stint.Reason.String] are about slots
// and entries of one process; those about tasks are in the command line.
func (r Reason) String() string {
	text, err := json.Marshal(r)
	if err != nil { // a time that JSON cannot encode
		return string(r.Code)
	}
	return string(text)
}

// Seen is the time of the last heartbeat of a worker.
type Seen struct {
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
}
