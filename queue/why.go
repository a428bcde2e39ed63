package queue

import (
	"encoding/json"
	"time"

	"github.com/stintgo/stint"
)

// HoldCode names what keeps a task from being eligible. The codes are also those
// of [Reason].
type HoldCode string

// The holds.
const (
	// HoldDependency: a task that has to succeed first has not, or a task or batch
	// that has to be finished first is not. If the State of that task is one that
	// lets this one start, the store is about to release this one.
	HoldDependency HoldCode = "dependency"
	// HoldForgotten: a task that had to succeed first was forgotten without success.
	// The store is about to cancel this one.
	HoldForgotten HoldCode = "forgotten"
	// HoldGroup: the task before it in its group is not finished.
	HoldGroup HoldCode = "group"
	// HoldKey: as many tasks of its key run as may.
	HoldKey HoldCode = "key"
	// HoldKeyTotal: as many tasks of its key run, in all queues together, as may.
	HoldKeyTotal HoldCode = "key_total"
	// HoldKeyRate: its key has used up its rate.
	HoldKeyRate HoldCode = "key_rate"
	// HoldQueuePaused: its queue is paused, or all are.
	HoldQueuePaused HoldCode = "queue_paused"
	// HoldSuspect: one more crash makes it dead, and another task of its queue of
	// which the same is true runs. See MaxCrashes of [Options].
	HoldSuspect HoldCode = "suspect"
	// HoldDamaged: what is kept of it cannot be read, as with a damaged disk; Error of
	// the [Task] says why, and most other fields are not known. Nothing has been lost
	// by that, and it is tried again about once in a minute.
	HoldDamaged HoldCode = "damaged"
)

// The reasons that a durable task can have besides those of package stint and
// those of holds.
const (
	// CodeScheduled: its RunAt has not come.
	CodeScheduled stint.Code = "scheduled"
	// CodeNoWorker: no live worker handles its kind in its queue.
	CodeNoWorker stint.Code = "no_worker"
	// CodeTotal: as many tasks run, in all queues together, as may, or the slots that
	// are free are reserved for queues that have waited longer.
	CodeTotal stint.Code = "total"
	// CodeTaskPaused: the task itself is paused.
	CodeTaskPaused stint.Code = "task_paused"
)

// Reason is one thing that keeps a task waiting. Code and what it says are as in
// [stint.Reason], with what only durable tasks have.
type Reason struct {
	stint.Reason

	// What is the group, task or batch that is waited for: dependency, forgotten, group. Of what
	// is damaged it is the error.
	What string `json:"what,omitempty"`
	// State is that of the task waited for.
	State State `json:"state,omitempty"`
	// Until is when the wait ends by itself: scheduled, rate, key_rate.
	Until time.Time `json:"until,omitzero"`
	// Failures is how often the task has failed: scheduled.
	Failures int `json:"failures,omitempty"`
	// SetBy is the origin of the limit or the rate: max, total, cap, key,
	// key_total, rate, key_rate. For queue_paused it has Default alone, which is set if
	// the pause is that of all queues.
	SetBy Origin `json:"set_by,omitzero"`
	// Queues are the queues whose tasks take up the limit, at most the ten that have
	// most of it, with how many of their tasks run: total, key_total.
	Queues map[string]int `json:"queues,omitempty"`
	// Holders are the tasks that hold what is waited for, at most ten: key, key_total,
	// max, total, suspect.
	Holders []ID `json:"holders,omitempty"`
	// LastSeen is the worker that last handled the kind, and when: no_worker.
	LastSeen Seen `json:"last_seen,omitzero"`
	// Estimate is how long the wait may take, from how many go first and how many
	// have started lately; zero if there is no basis for one.
	Estimate time.Duration `json:"estimate_ns,omitempty"`
}

// String returns r as JSON, for a log. The sentences of [stint.Reason.String] are about slots
// and entries of one process; those about tasks are in the command line and the dashboard.
func (r Reason) String() string {
	text, err := json.Marshal(r)
	if err != nil { // a time that JSON cannot have
		return string(r.Code)
	}
	return string(text)
}

// Seen is the time of the last heartbeat of a worker.
type Seen struct {
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
}
