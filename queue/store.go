package queue

import (
	"context"
	"time"

	"github.com/stintgo/stint"
)

// Store keeps tasks and makes their transitions, atomically and durably. A [Queue] has the
// policy that is the same for every store; a Store has what depends on where tasks are
// kept: memory, files, a database. Store declares the calls on tasks, and embeds [Admin],
// the calls on queues, schedules and the store as a whole. Package storetest tests this
// contract, and every store passes all of its cases.
//
// Time. Each method that changes tasks takes the present time, and a store reads no clock.
// A store that many hosts share uses the clock of its server instead, and documents that.
// Concurrent calls may arrive in another order than that of their times: a store uses the
// latest time since it was opened.
//
// The first call after a store is opened may be earlier than times that the store keeps,
// if the clock of another process was ahead. The store then moves those times back, by the
// distance from the latest of them to that call: RunAt with the step that set it, and
// Deadline with the submission. So a delay of ten minutes by the other clock is a delay of
// ten minutes by this one. Times before the first call stay as they are: what they delay
// is never early, and late by at most as much as the clock was ahead.
//
// Durability. A change that a method has reported as made survives a crash of the process
// and a loss of power, except as a method documents: a claim need not survive a loss of
// power, after which its tokens are void. After an error that wraps [ErrUnavailable] the
// result is unknown, and the caller may repeat the call. All methods may be repeated: a
// second Submit of the same ID, or a second Settle with the same token, returns what the
// first returned.
//
// Leases. The leases of the process of a store end with the store. Close releases them.
// After a crash they are lost when the store is opened again or, in a store that cannot
// detect the crash, when they expire; a lost lease counts as a crash of its task. The
// steps of lost leases have the time of the first call, and before that call the time of
// the last change that the store has kept, because a store that reads no clock does not
// know the time of the crash. Leases of [Claim.Remote] outlive the store: they keep their
// tokens, and last from the first call on for as long as they were claimed for.
//
// Concurrency. All methods are safe for concurrent use. Each call is one step, unless its
// method documents otherwise: other callers, and a store that is opened after a crash, see
// all of it or nothing. The end of a context ends the wait for the result and not the
// step: a call that was cancelled may or may not have been made.
//
// Dependents. When a task or batch ends that very many tasks wait for, one step releases
// or cancels a bounded number of them, the first of them with that end, and the store
// makes further steps for the others by itself, also after a crash. Until its step, a
// dependent does not change; a dependent that has to wait again does not start.
type Store interface {
	Admin

	// Submit accepts tasks, all or none, in this order, at most [MaxSubmit] of them. The
	// caller chooses their IDs, which must be new. A task is not accepted if the store
	// remembers a task with the same Unique, or the call has one before it; its receipt
	// then has the ID of the earlier task. Errors: ErrInvalid, ErrTooLarge, ErrFull.
	Submit(ctx context.Context, now time.Time, tasks []NewTask) ([]Receipt, error)

	// Claim leases up to Max tasks of a queue to a worker: the first ones in the order of
	// the queue of the kinds that the worker handles. It does not wait for tasks; Claimed
	// says when to claim again. A claim also ends tasks whose Deadline has passed, a bounded
	// number of them in each step.
	Claim(ctx context.Context, now time.Time, c Claim) (Claimed, error)

	// Settle ends leases with the outcomes of their tasks. It returns an error for each
	// outcome: nil, or ErrStale if its token is not that of a live lease.
	Settle(ctx context.Context, now time.Time, outcomes []Outcome) ([]error, error)

	// Heartbeat records that a worker is alive, extends the leases of its tasks, and keeps
	// their progress and checkpoints; progress need not outlive the store, since the next
	// heartbeat reports it again. It returns an answer for each task: to continue, or the
	// reason to stop. Errors: ErrTooLarge, which changes nothing, if a checkpoint is over
	// its limit.
	Heartbeat(ctx context.Context, now time.Time, w Worker, heartbeats []Heartbeat) ([]Answer, error)

	// Command applies an order to all tasks that a filter finds, up to a limit, and
	// returns how many have changed or, if they run, have been ordered to stop. The tasks
	// are found before anything changes, the oldest first: so OrderForget leaves a task that
	// is cancelled only because a predecessor is forgotten. A command for very many tasks, or
	// for large ones, is made in parts, in that order: each part is a step, and finds its own
	// tasks; after an error, the parts before it have been made. Tasks that cannot be read are left
	// unchanged: all others are changed, and the error, an ErrUnavailable, says so.
	Command(ctx context.Context, now time.Time, c Command) (int, error)

	// Find returns the tasks that match a filter, a page at a time; see [Page]. It returns
	// each task as it was at some time during the call. Explain, Stats, Watch, and Find without
	// [Page.Durable], may return changes that are not durable yet, and that a crash may undo.
	// A task that cannot be read is returned with the fields that are known, see
	// [HoldDamaged], if the filter needs no others. A store that consists of several may return
	// the tasks of those that answer with a [PartialError].
	Find(ctx context.Context, f Filter, p Page) ([]Task, error)

	// Explain returns the reasons why a task waits, the binding reason first, and none if
	// the task is running or finished. Errors: ErrNotFound.
	Explain(ctx context.Context, now time.Time, id ID) ([]Reason, error)

	// Maintain makes the transitions that are due: of tasks whose RunAt or Deadline has
	// come, of leases that have expired, of finished tasks whose retention is over. It makes
	// at most limit changes, or any number if limit is 0, a bounded number of them in each
	// step. It returns when to call it again; the zero time means that nothing is due until
	// another call changes a task. Errors: ErrInvalid if limit is negative.
	Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error)

	// Listen sends to ready when tasks of a queue may have become claimable, until stop is
	// called; a claim after the signal finds those tasks. Each listener has its own channel,
	// and a change signals all listeners of this process; a store behind a server signals one
	// process at first, and further ones while tasks wait. A channel holds one signal, which
	// stands for all since the last receive, and may be spurious. So a worker that listens,
	// claims until no task is left, and only then waits, misses no task.
	//
	// stop does not block, and may be called more than once. After it has returned, the
	// store sends no more signals and keeps no memory of the listener. A closed store sends
	// no signals; no channel is ever closed.
	Listen(queue string) (ready <-chan struct{}, stop func())

	// Watch calls begun, and then fn for every change of a task's state since that call, in
	// order, until ctx ends. A watcher that is too slow misses events; a later event has
	// their number. If the watch cannot begin, Watch calls neither function. The watch of a store
	// that consists of several may begin without those that do not answer; then it ends with an
	// ErrUnavailable when one of them answers again.
	Watch(ctx context.Context, begun func(), fn func(Event)) error

	// Close releases the leases of this process, which does not count as a crash of their
	// tasks, and ends all calls with ErrClosed. Leases of other processes stay.
	Close() error
}

// MaxSubmit is the largest number of tasks in one call of Submit. Other calls wait while
// they are accepted: one or two microseconds for each task, and a write to the disk.
const MaxSubmit = 2000

// NewTask is a task to submit.
type NewTask struct {
	ID ID `json:"id"`
	Spec
}

// Receipt is the answer to a task submitted.
type Receipt struct {
	ID       ID   `json:"id"`                 // of the task, or of an earlier one with the same Unique
	Existing bool `json:"existing,omitempty"` // ID is that of an earlier task
}

// Claim asks for tasks.
type Claim struct {
	Worker string        `json:"worker"`
	Queue  string        `json:"queue,omitempty"`
	Kinds  []string      `json:"kinds,omitempty"` // only tasks of these kinds
	Max    int           `json:"max"`             // the largest number of tasks
	Lease  time.Duration `json:"lease_ns"`        // the length of the leases, which heartbeats extend
	// Bytes ends the claim early: when the claimed tasks have that many bytes, by
	// [Task.Size], no more are claimed. 0 means no limit.
	Bytes int `json:"bytes,omitempty"`
	// Remote says that the worker is not in the process of the store, so that its leases
	// outlive that process.
	Remote bool `json:"remote,omitempty"`
}

// Claimed is the answer to a claim.
type Claimed struct {
	Tasks []Task `json:"tasks,omitempty"`
	// Next is when to claim again, if there are fewer than Max tasks: the time at which a
	// rate allows more. If it is zero, wait for a signal of [Store.Listen]. If it is not
	// after the claim, claim again at once: the store has ended the claim early.
	Next time.Time `json:"next,omitzero"`
}

// Outcome is the result of an attempt.
type Outcome struct {
	ID    ID          `json:"id"`
	Token Token       `json:"token"`
	Kind  OutcomeKind `json:"on,omitempty"`

	Result     []byte    `json:"result,omitempty"`    // of a success
	Error      string    `json:"error,omitempty"`     // of a failure; or why the task is released, for its step only
	Permanent  bool      `json:"permanent,omitempty"` // a failure that no retry can succeed after
	RunAt      time.Time `json:"run_at,omitzero"`     // when to try again, after a failure or a snooze
	Checkpoint []byte    `json:"checkpoint,omitzero"` // for the next attempt; nil keeps the present one

	// InTx says that an outcome of this attempt has been put into a transaction of the
	// handler, see [Attempt.Outcome]: if that commits, it counts instead of this one.
	InTx bool `json:"in_tx,omitempty"`
}

// Worker is a Run that claims tasks.
type Worker struct {
	Name  string              `json:"name"` // unique to each Run of each start of a process
	Host  string              `json:"host,omitempty"`
	PID   int                 `json:"pid,omitempty"`
	Kinds map[string][]string `json:"kinds"` // by queue
	Slots int                 `json:"slots"`
	// Version is that of this module in the program, "(devel)" if the program was built in
	// a copy of its source.
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since"`
}

// Heartbeat extends the lease of one task, and reports its progress.
type Heartbeat struct {
	ID         ID            `json:"id"`
	Token      Token         `json:"token"`
	Lease      time.Duration `json:"lease_ns,omitempty"` // from now on
	Progress   Progress      `json:"progress,omitzero"`
	Checkpoint []byte        `json:"checkpoint,omitzero"` // nil keeps the present one
}

// Answer is the answer to the heartbeat of one task.
type Answer struct {
	Stop   StopReason `json:"order,omitempty"`  // 0: continue
	Reason string     `json:"reason,omitempty"` // in the words of the author of the order
	// Missing says that the store of the task did not answer, and may not have extended the
	// lease. Only a store that consists of several sets it.
	Missing bool `json:"missing,omitempty"`
}

// Command is an order to all tasks that a filter finds.
type Command struct {
	Do     Order  `json:"do,omitempty"`
	Edit   *Edit  `json:"edit,omitempty"` // the change of OrderEdit
	Filter Filter `json:"filter,omitzero"`
	// All permits a Filter that sets no field and so finds every task of the store. Without
	// All such a command is ErrInvalid. A Filter that sets a field needs no All, and All
	// does not widen it.
	All    bool   `json:"all,omitempty"`
	Limit  int    `json:"limit,omitempty"`  // the largest number of tasks; 0 means no limit
	By     string `json:"by,omitempty"`     // the author of the command; at most MaxName bytes
	Reason string `json:"reason,omitempty"` // why; at most MaxReason bytes
}

// Edit is the change that a [Command] with OrderEdit makes to tasks that are Scheduled,
// Held, Waiting or Paused; it leaves others unchanged. Nil fields leave the task's field
// unchanged. At least one field must be set. A task keeps its age: it takes the place that
// it would have if it had been submitted with its new tier and key. A paused task stays
// paused. A task is left unchanged if the edit sets a time and Deadline would then not be
// after RunAt, or if the task would have more than 32 labels.
type Edit struct {
	Tier     *stint.Priority   `json:"tier,omitempty"`
	Key      *string           `json:"key,omitempty"`      // "" removes the key
	RunAt    *time.Time        `json:"run_at,omitempty"`   // the zero time starts the task at once
	Deadline *time.Time        `json:"deadline,omitempty"` // the zero time removes the deadline
	Labels   map[string]string `json:"labels,omitempty"`   // added; they replace labels with the same names
}

// Filter finds the tasks that match all of its fields. A field that is not set matches
// every task, so the zero value finds all of them.
type Filter struct {
	// IDs finds the tasks with these IDs. Nil finds tasks with any ID; an empty list that is
	// not nil finds none. JSON keeps the two apart: a list without IDs is an empty array.
	IDs []ID `json:"ids,omitzero"`
	// Ending is the last hexadecimal digits of the ID, in lower case and without
	// dashes: unlike the first ones, they distinguish tasks of the same time. A store
	// looks at each of its tasks for them, which takes about 20 ms for a million.
	Ending string            `json:"ending,omitempty"`
	Queue  string            `json:"queue,omitempty"`
	Kind   string            `json:"kind,omitempty"`
	Key    string            `json:"key,omitempty"`
	Group  string            `json:"group,omitempty"`
	Batch  ID                `json:"batch,omitzero"`
	Worker string            `json:"worker,omitempty"` // that has the lease
	States []State           `json:"states,omitempty"` // any of them; empty: any state
	Labels map[string]string `json:"labels,omitempty"` // all of them
	Error  string            `json:"error,omitempty"`  // is a part of the task's error
	From   time.Time         `json:"from,omitzero"`    // submitted at this time or later
	To     time.Time         `json:"to,omitzero"`      // submitted before
}

// Page is a part of what a filter finds. Tasks come in the order of their IDs,
// which is that of their age.
type Page struct {
	After  ID   `json:"after,omitzero"`   // start behind this one; zero: at the beginning
	Newest bool `json:"newest,omitempty"` // the newest first
	Limit  int  `json:"limit,omitempty"`  // 100 if it is 0; a page with fewer tasks is the last, unless Bytes ends it
	// Bytes ends the page early: with the task with which its tasks have that many bytes, by
	// [Task.Size]. 0 means no limit. A page that has that many may not be the last.
	Bytes int `json:"bytes,omitempty"`
	// Durable makes the call wait until all that it returns is durable. It returns an
	// ErrUnavailable if that does not come to pass: its context ends, or the store fails.
	Durable bool `json:"durable,omitempty"`
}

// Event is a change of a task's state.
type Event struct {
	ID    ID     `json:"id"`
	Queue string `json:"queue"`
	Kind  string `json:"kind"`
	From  State  `json:"from"`
	Step
	Missed int `json:"missed,omitempty"` // events that this watcher was too slow for, before this one
}
