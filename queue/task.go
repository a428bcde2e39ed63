package queue

import (
	"time"

	"github.com/stintgo/stint"
)

// Spec is what is asked of a task when it is submitted. Kind is required; the
// zero value of everything else is a sensible default.
type Spec struct {
	Queue   string `json:"queue,omitempty"` // "default" if empty
	Kind    string `json:"kind"`            // names the handler
	Payload []byte `json:"payload,omitempty"`

	Tier stint.Priority `json:"tier,omitempty"`
	// Key is whose task it is: a tenant, a host. Keys of a tier take turns, and
	// limits may hold for each. Empty is no key.
	Key string `json:"key,omitempty"`
	// Unique makes submitting idempotent: as long as a task with the same Queue
	// and Unique is remembered, submitting another answers the first one's ID.
	Unique string `json:"unique,omitempty"`
	// Group makes tasks of a queue run strictly one after the other, in the order
	// of their submission, each when the one before is finished, retries and all.
	Group string `json:"group,omitempty"`

	// After are tasks that must have succeeded before this one starts. While one
	// of them is dead or cancelled, this one is held; retrying it goes on.
	After []ID `json:"after,omitempty"`
	// Batch is the batch that the task belongs to.
	Batch ID `json:"batch,omitzero"`
	// AfterBatch holds the task until no task of that batch is unfinished,
	// whatever became of them.
	AfterBatch ID `json:"after_batch,omitzero"`

	RunAt    time.Time     `json:"run_at,omitzero"`   // not before; zero is at once
	Deadline time.Time     `json:"deadline,omitzero"` // starts before, or dies
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	// MaxAttempts is how often the task may fail before it is dead: 3 if it is 0.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxCrashes is how many leases in a row may be lost before the task is taken
	// for poison and is dead: 3 if it is 0.
	MaxCrashes int `json:"max_crashes,omitempty"`

	Labels map[string]string `json:"labels,omitempty"` // for people, and to find tasks by
	Trace  string            `json:"trace,omitempty"`  // W3C traceparent of the submitter
}

// Task is all that a store knows of one task.
type Task struct {
	ID ID `json:"id"`
	Spec

	State State `json:"state"`
	// Holds are why the task is [Held], the binding reason first.
	Holds []Hold `json:"holds,omitempty"`
	// Order is [OnPause] or [OnCancel] if the task is [Running] and its worker has
	// yet to obey.
	Order Trigger `json:"order,omitempty"`

	Lease    Lease `json:"lease,omitzero"` // while it is Running
	Failures int   `json:"failures,omitempty"`
	Crashes  int   `json:"crashes,omitempty"` // leases lost in a row

	Progress   Progress `json:"progress,omitzero"`
	Checkpoint []byte   `json:"checkpoint,omitempty"` // what a handler saved for the next attempt
	Result     []byte   `json:"result,omitempty"`
	Error      string   `json:"error,omitempty"` // the last one

	Submitted time.Time `json:"submitted"`
	Changed   time.Time `json:"changed"` // when it got into its State
	Steps     []Step    `json:"steps"`   // its life so far; see [MaxSteps]
}

// Token is the fencing token of a lease. Each lease of a task has a larger one
// than all before it, also after a crash of the store. What comes with an older
// one is refused.
type Token uint64

// Lease is a worker's right to run a task.
type Lease struct {
	Worker string    `json:"worker"`
	Token  Token     `json:"token"`
	Until  time.Time `json:"until"` // when it ends, unless it is extended
}

// Progress is what a handler reports of its work.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"` // 0 if it is not known
	Note  string `json:"note,omitempty"`
}

// MaxSteps is how many steps of a task are kept: the first one, and the newest.
const MaxSteps = 64

// Step is one change of a task's state.
type Step struct {
	At     time.Time `json:"at"`
	On     Trigger   `json:"on"`
	To     State     `json:"to"`
	By     string    `json:"by,omitempty"`    // the worker, or who said so
	Token  Token     `json:"token,omitempty"` // of the lease, for what happens to a running task
	Detail string    `json:"detail,omitempty"`
}

// Hold is something other than its turn that keeps a task from starting.
type Hold struct {
	Code HoldCode `json:"code"`
	// What is the key, the group, or the task or batch that it waits for.
	What string `json:"what,omitempty"`
	// State is that of the task waited for.
	State State `json:"state,omitempty"`
}
