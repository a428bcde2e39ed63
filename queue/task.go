package queue

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stintgo/stint"
)

// Spec is the part of a task that its submitter sets. Kind is required. [Kind.Spec] makes
// a Spec of a payload that is a Go value.
type Spec struct {
	Kind    string `json:"kind"` // names the handler
	Payload []byte `json:"payload,omitempty"`
	Options
}

// Options are the options of a task: its queue and its order there, its predecessors,
// times and limits. The zero value of each is a sensible default.
type Options struct {
	Queue string         `json:"queue,omitempty"` // [DefaultQueue] if empty
	Tier  stint.Priority `json:"tier,omitempty"`
	// Key is the owner of the task, such as a tenant or a host. The keys of a tier take
	// turns, and limits may apply to each. Empty means no key.
	Key string `json:"key,omitempty"`
	// Unique makes submitting idempotent: while the store remembers a task with the same
	// Queue and Unique, submitting another one returns the ID of the first.
	Unique string `json:"unique,omitempty"`
	// UniqueFor is the least time after its submission for which the task's Unique
	// returns its ID, even if the task has been forgotten meanwhile, however many tasks
	// have finished after it. 0 is as long as the task is remembered, and [MaxUniqueFor]
	// the most. Only a purge of the task ends it earlier. A store keeps the Unique of a
	// forgotten task in memory, in about 300 bytes. A task of the same call that comes after
	// the repeated one is accepted if it does so in AfterAny, and refused if it does in
	// After, because the forgotten task may have failed.
	UniqueFor time.Duration `json:"unique_for_ns,omitempty"`
	// Group makes the tasks of a queue that share it run one after the other in the
	// order of submission (FIFO). Each starts when the one before is finished, with all
	// its retries.
	Group string `json:"group,omitempty"`

	// After are tasks that must have succeeded before this one starts. While one of them
	// is dead or cancelled, this task is held, because a retry of that task may succeed.
	// When one of them is forgotten without success, this task is cancelled, and so are
	// the tasks after this one. A retry of a cancelled task restarts that task alone,
	// which then waits for its predecessors that are not forgotten; retry the tasks
	// after it as well. A later task with the ID of a forgotten predecessor is ignored.
	After []ID `json:"after,omitempty"`
	// AfterAny are tasks that must be finished before this one starts, whatever their
	// outcome. A forgotten task counts as finished. A retry of one of them holds this
	// task again, unless this task runs or is finished. [Queue.Predecessors] returns their results.
	AfterAny []ID `json:"after_any,omitempty"`
	// Batch is the batch that the task belongs to.
	Batch ID `json:"batch,omitzero"`
	// AfterBatch holds the task until no task of that batch is unfinished, whatever
	// their outcomes. If a task of the batch waits for this task, both wait for ever;
	// such a cycle is refused only among the tasks of one Submit.
	AfterBatch ID `json:"after_batch,omitzero"`

	// RunAt is the time before which the task does not start; zero is at once. It
	// follows the clock of leases, which does not jump, and stops while the machine is
	// suspended. If that clock was ahead when the task was submitted, a store that is
	// opened with the right clock moves RunAt back, see [Store].
	RunAt time.Time `json:"run_at,omitzero"`
	// Deadline is the time by which each attempt has to start; zero is none. A task that
	// waits then is dead, also if it waits for another attempt; one that runs continues.
	Deadline time.Time     `json:"deadline,omitzero"`
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	// MaxAttempts is the number of failed attempts after which the task is dead; 0 means
	// 3.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxCrashes is the number of leases in a row that may be lost before the task is
	// dead as poison; 0 means 3. The crash of a process counts for all of its tasks. A
	// task that has crashed and that the next crash makes dead is a suspect. One suspect
	// of a queue runs at a time, so that a suspect does not die of the crash of another.
	// While it runs, [HoldSuspect] holds the other suspects, and no other task; a
	// suspect that is paused, scheduled, held or without a worker holds no other. With a
	// limit of 1 there are no suspects.
	MaxCrashes int `json:"max_crashes,omitempty"`

	Labels map[string]string `json:"labels,omitempty"` // for people, and for filters
	Trace  string            `json:"trace,omitempty"`  // W3C traceparent of the submitter
}

// DefaultQueue is the queue of tasks whose Options name none.
const DefaultQueue = "default"

// MaxUniqueFor is the longest [Options.UniqueFor]: a year.
const MaxUniqueFor = 366 * 24 * time.Hour

// Task is a task as its store has it.
type Task struct {
	ID ID `json:"id"`
	Spec

	State State `json:"state"`
	// Holds are the reasons why the task is [Held], the binding reason first.
	Holds []Hold `json:"holds,omitempty"`
	// Order is [OrderPause] or [OrderCancel] if the task is [Running] and its worker has
	// been ordered to stop it.
	Order Order `json:"order,omitempty"`

	Lease    Lease `json:"lease,omitzero"` // while it is Running
	Failures int   `json:"failures,omitempty"`
	Crashes  int   `json:"crashes,omitempty"` // leases lost in a row

	Progress   Progress `json:"progress,omitzero"`
	Checkpoint []byte   `json:"checkpoint,omitempty"` // of the last attempt that has saved one
	Result     []byte   `json:"result,omitempty"`
	Error      string   `json:"error,omitempty"` // of the last failure

	Submitted time.Time `json:"submitted"`
	Changed   time.Time `json:"changed"` // when it came into its State, or was edited in it
	Steps     []Step    `json:"steps"`   // its history; see [MaxSteps]
}

// Size returns the approximate size of the task in an answer, in bytes. Stores limit
// answers by it: see Bytes of [Page] and [Claim].
func (t *Task) Size() int {
	const (
		itself   = 1 << 10 // with names, times and numbers
		eachStep = 128
		eachPart = 32 // an ID, a label or a hold, without its text
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

// Token is the fencing token of a lease. Each lease of a task has a larger token than all
// before it, also after a crash of the store. Calls with an older token are refused.
//
// In JSON it is a string of digits, because some readers lose the precision of numbers
// above 2⁵³.
type Token uint64

// MarshalText returns the number in decimal digits.
func (t Token) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(t), 10), nil }

// UnmarshalText parses decimal digits.
func (t *Token) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %.40q is not a token, which is a number", ErrInvalid, text)
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

// Progress is the progress of an attempt, as its handler reports it.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"` // 0 if unknown
	Note  string `json:"note,omitempty"`  // stores truncate it to about 4,096 bytes
}

// MaxSteps is the number of steps of a task that are kept: the first one, and the newest.
const MaxSteps = 64

// Step is one change of a task's state.
type Step struct {
	At     time.Time `json:"at"`
	On     Trigger   `json:"on"`
	To     State     `json:"to"`
	By     string    `json:"by,omitempty"`    // the worker, or the author of the command
	Token  Token     `json:"token,omitempty"` // of the lease, for changes of a running task
	Detail string    `json:"detail,omitempty"`
}

// Hold is a reason other than its turn for which a task cannot start.
type Hold struct {
	Code HoldCode `json:"code"`
	// What is the key, the group, the task or the batch that the task waits for, or the
	// error.
	What string `json:"what,omitempty"`
	// State is the state of the task that this one waits for.
	State State `json:"state,omitempty"`
}
