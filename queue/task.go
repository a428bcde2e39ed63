package queue

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stintgo/stint"
)

// Spec is the part of a task that its submitter sets: what is to be done, and how. Kind is
// required. With a [Kind] the payload is a Go value; see Kind.Submit.
type Spec struct {
	Kind    string `json:"kind"` // names the handler
	Payload []byte `json:"payload,omitempty"`
	Options
}

// Options are the queue of a task, its place there, its predecessors, its times and its
// limits. The zero value of each is a sensible default.
type Options struct {
	Queue string         `json:"queue,omitempty"` // [DefaultQueue] if empty
	Tier  stint.Priority `json:"tier,omitempty"`
	// Key is whose task it is: a tenant, a host. Keys of a tier take turns, and
	// limits may hold for each. Empty is no key.
	Key string `json:"key,omitempty"`
	// Unique makes submitting idempotent: as long as a task with the same Queue
	// and Unique is remembered, submitting another answers the first one's ID.
	Unique string `json:"unique,omitempty"`
	// UniqueFor is how long after its submission a task's Unique answers its ID at the
	// least, also if the task has been forgotten meanwhile, however many tasks have
	// finished after it. 0 is as long as the task is remembered, at most [MaxUniqueFor].
	// Only a purge of the task ends it earlier. A store keeps the Unique of a forgotten
	// task in memory: about 300 bytes.
	UniqueFor time.Duration `json:"unique_for_ns,omitempty"`
	// Group makes tasks of a queue run strictly one after the other, in the order
	// of their submission, each when the one before is finished, retries and all.
	Group string `json:"group,omitempty"`

	// After are tasks that must have succeeded before this one starts. While one of
	// them is dead or cancelled, this task is held, because a retry of that one may
	// succeed. When one of them is forgotten without having succeeded, this task is
	// cancelled, and so are the tasks after this one, down the chain. A retry of a
	// cancelled task revives that task alone, which then waits for those of its
	// predecessors that are not forgotten; retry the tasks after it as well. A later
	// task with the ID of one that has been forgotten is none of them.
	After []ID `json:"after,omitempty"`
	// AfterAny are tasks that must be finished when this one starts, whatever became of
	// them: one that is forgotten counts as finished, and one that is retried before
	// this task has started holds it again. [Queue.Predecessors] reads their results.
	AfterAny []ID `json:"after_any,omitempty"`
	// Batch is the batch that the task belongs to.
	Batch ID `json:"batch,omitzero"`
	// AfterBatch holds the task until no task of that batch is unfinished,
	// whatever became of them. If one of them in turn waits for this task, both
	// wait for ever: that is refused among tasks of one Submit, and nowhere else.
	AfterBatch ID `json:"after_batch,omitzero"`

	// RunAt is the time before which the task does not start; zero is at once. It
	// goes by the clock of leases, which does not jump, and stands still while the
	// machine is suspended. If that clock was ahead when the task was submitted, a
	// store that is opened with the right one moves RunAt back, see [Store].
	RunAt    time.Time     `json:"run_at,omitzero"`
	Deadline time.Time     `json:"deadline,omitzero"` // starts before, or dies
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	// MaxAttempts is how often the task may fail before it is dead: 3 if it is 0.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxCrashes is how many leases in a row may be lost before the task is taken
	// for poison and is dead: 3 if it is 0. A process that crashes is counted for
	// all tasks that it had. A task that has crashed and that the next crash makes dead
	// is a suspect. One suspect of a queue runs at a time, so that a suspect does not die
	// of the crash of another. While it runs the other suspects are held by
	// [HoldSuspect], and no other task is; a suspect that is paused, scheduled, held or
	// without a worker holds no other. With a limit of 1 there are no suspects.
	MaxCrashes int `json:"max_crashes,omitempty"`

	Labels map[string]string `json:"labels,omitempty"` // for people, and to find tasks by
	Trace  string            `json:"trace,omitempty"`  // W3C traceparent of the submitter
}

// MaxUniqueFor is the longest [Options.UniqueFor]: a year.
const MaxUniqueFor = 366 * 24 * time.Hour

// Task is all that a store knows of one task.
type Task struct {
	ID ID `json:"id"`
	Spec

	State State `json:"state"`
	// Holds are why the task is [Held], the binding reason first.
	Holds []Hold `json:"holds,omitempty"`
	// Order is [OrderPause] or [OrderCancel] if the task is [Running] and its worker has
	// yet to obey.
	Order Order `json:"order,omitempty"`

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

// Size is about how many bytes the task takes in an answer. Stores bound answers by it:
// see Bytes of [Page] and [Claim].
func (t *Task) Size() int {
	const (
		itself   = 1 << 10 // with names, times and numbers
		eachStep = 128
		eachPart = 32 // an ID, a label or a hold, besides its text
	)
	size := itself + len(t.Payload) + len(t.Checkpoint) + len(t.Result) + len(t.Error) + len(t.Progress.Note)
	size += (len(t.After)+len(t.AfterAny)+len(t.Labels)+len(t.Holds))*eachPart + len(t.Steps)*eachStep
	for label, value := range t.Labels {
		size += len(label) + len(value)
	}
	for i := range t.Holds {
		size += len(t.Holds[i].What)
	}
	for i := range t.Steps {
		size += len(t.Steps[i].By) + len(t.Steps[i].Detail)
	}
	return size
}

// Token is the fencing token of a lease. Each lease of a task has a larger one
// than all before it, also after a crash of the store. What comes with an older
// one is refused.
//
// Its text is the number, and so it is a string in JSON: the numbers of some
// readers end at 2⁵³.
type Token uint64

// MarshalText writes the number.
func (t Token) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(t), 10), nil }

// UnmarshalText reads what [Token.MarshalText] writes.
func (t *Token) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40q is no token, which is a number", ErrInvalid, text)
	}
	*t = Token(n)
	return nil
}

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
	Note  string `json:"note,omitempty"`  // of a longer one, stores keep about the first 4096 bytes
}

// MaxSteps is how many steps of a task are kept: the first one, and the newest.
const MaxSteps = 64

// Step is one change of a task's state.
type Step struct {
	At     time.Time `json:"at"`
	On     Trigger   `json:"on"`
	To     State     `json:"to"`
	By     string    `json:"by,omitempty"`    // the worker, or the author of the command
	Token  Token     `json:"token,omitempty"` // of the lease, for what happens to a running task
	Detail string    `json:"detail,omitempty"`
}

// Hold is something other than its turn that keeps a task from starting.
type Hold struct {
	Code HoldCode `json:"code"`
	// What is the key, the group, the task or batch that it waits for, or the error.
	What string `json:"what,omitempty"`
	// State is that of the task waited for.
	State State `json:"state,omitempty"`
}
