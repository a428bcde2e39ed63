package queue

import (
	"context"
	"time"

	"github.com/stintgo/stint"
)

// Store keeps tasks and makes their transitions, atomically and durably. It is
// the seam between a [Queue], which has the policy that can live in Go once, and
// where tasks are kept: memory, files, PostgreSQL, Redis. Its own calls are those of
// submitters and workers; those of operators are [Admin]. Package storetest is
// this contract as tests; every store passes all of it.
//
// Time. Every method that changes something takes the time at which it
// happens, and a store reads no clock. A store that many hosts share uses its
// own server's clock instead, and says so. Calls may pass one another on their way,
// so their times may go backwards: a store takes the latest since it was opened.
//
// The first call after a store is opened may be earlier than times that it keeps,
// if another process had a clock that was ahead. The store moves those times back then,
// by the distance from the latest of them to that call: the time in between counts as
// none. RunAt moves with the step that set it, and Deadline with the submission. So
// what was to happen in ten minutes by the other clock happens in ten minutes by this
// one. Earlier times stay as they are: what they delay is never early, and late by at
// most as much as the clock was ahead.
//
// Durability. What a method has answered survives a crash of the process and
// loss of power, but for what it says itself: a claim need not survive power
// loss, after which its tokens are void. An error that wraps [ErrUnavailable]
// means that nothing is known to have been done; the caller may repeat the call.
// All methods may be repeated: a second Submit of the same ID, or a second
// Settle with the same token, is answered like the first.
//
// Leases. A store that ends takes the leases of its own process with it. If it
// was closed they are given back; if it crashed they are lost when it is opened
// again, or, in a store that cannot know, when they run out, and that counts as a
// crash of their tasks. A store that reads no clock does not know when that was: the
// steps have the time of the first call after it, and before that call the time of the
// last change that the store has kept. Leases of [Claim.Remote] outlive the store: they
// last for as long as they were claimed for from the first call on, with the same
// tokens.
//
// Concurrency. All methods may be called at any time from any goroutine. Each
// is one step, unless it says otherwise: all of it, or nothing of it, is seen by
// others and found after a crash. Contexts end waiting, not the step: a call that was
// cancelled may or may not have been done.
//
// Dependents. When very many tasks wait for a task or a batch that ends, a step
// releases or cancels a bounded number of them, the first ones in the step of that end,
// and the store does the rest by itself in further steps, also after a crash. Until
// then they are as they were, but none starts that has to wait again.
type Store interface {
	Admin

	// Submit accepts tasks, all or none, in this order, at most [MaxSubmit] of them.
	// Their IDs, chosen by the caller, must be new. A task with the Unique of another one
	// that the store remembers, or that comes before it in the same call, is not accepted;
	// the receipt has the ID of that other task. Errors: ErrInvalid, ErrTooLarge, ErrFull.
	Submit(ctx context.Context, now time.Time, tasks []NewTask) ([]Receipt, error)

	// Claim leases up to Max tasks of a queue to a worker: those whose turn it is,
	// of the kinds that it knows. It never waits; Claimed says when to come back. Tasks
	// whose Deadline has passed end on the way, a bounded number of them in each step.
	Claim(ctx context.Context, now time.Time, c Claim) (Claimed, error)

	// Settle ends leases with the outcomes of their tasks. There is an error for each
	// outcome: nil, or ErrStale if its token is not that of a live lease.
	Settle(ctx context.Context, now time.Time, outcomes []Outcome) ([]error, error)

	// Heartbeat records that a worker is alive, extends the leases of its tasks, and keeps
	// the progress and checkpoints that they report; progress need not outlive the store,
	// since the next heartbeat reports it again. There is an answer for each task: to go
	// on, or why to stop.
	Heartbeat(ctx context.Context, now time.Time, w Worker, heartbeats []Heartbeat) ([]Answer, error)

	// Command applies an order to all tasks that a filter finds, up to a limit, and
	// returns how many have changed or, if they run, have been ordered to stop. The tasks
	// are found before anything changes, the oldest first: so OrderForget leaves a task that
	// is cancelled only because a predecessor is forgotten. A command for very many tasks is
	// made in parts, in that order: each part is a step, and finds its own tasks; after an
	// error, the parts before it have been made. Tasks that cannot be read are left
	// unchanged: all others are changed, and the error, an ErrUnavailable, says so.
	Command(ctx context.Context, now time.Time, c Command) (int, error)

	// Find returns tasks a page at a time; see [Page]. Others may change tasks
	// meanwhile: each is as it was at some time of the call. Like Explain, Stats and
	// Watch it may show what has been decided and is not durable yet: after a
	// crash that may not have been. A task that cannot be read is shown with what is
	// known of it, see [HoldDamaged], unless the filter asks for more than that.
	Find(ctx context.Context, f Filter, p Page) ([]Task, error)

	// Maintain makes the transitions that are due: of tasks whose RunAt or Deadline has
	// come, of leases that have expired, of finished tasks whose retention is over. It makes
	// at most limit changes, a bounded number of them in each step, and returns when there
	// is more to do; a zero time means that nothing is due until another call changes that.
	Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error)

	// Listen signals that tasks of a queue may have become claimable, from now on until
	// stop is called: ready receives afterwards, and a claim made then finds them. Each
	// listener has a channel of its own, and all of this process are signalled. A channel
	// holds one signal, which stands for all since the last receive, and may be spurious.
	// So a worker that listens, claims until there is no more, and only then waits,
	// misses nothing.
	//
	// stop does not block, and may be called more than once. When it has
	// returned nothing more is sent, and nothing is kept of the listener. A store that
	// is closed sends no signals; no channel is ever closed.
	Listen(queue string) (ready <-chan struct{}, stop func())

	// Watch calls begun, and then fn for every change of any task's state since begun
	// was called, in their order, until ctx ends. A watcher that is too slow misses
	// some, and a later event says how many. If the watch cannot begin, neither is called.
	Watch(ctx context.Context, begun func(), fn func(Event)) error

	// Close gives the leases of this process back, which is no crash of their
	// tasks, and ends all calls with ErrClosed. Those of other processes stay.
	Close() error
}

// MaxSubmit is how many tasks one call of Submit may have. Others wait while they are
// accepted: a microsecond or two for each, and the disk.
const MaxSubmit = 2000

// NewTask is a task to submit.
type NewTask struct {
	ID ID `json:"id"`
	Spec
}

// Receipt is the answer to a task submitted.
type Receipt struct {
	ID       ID   `json:"id"`                 // the task's, or that of the one with the same Unique
	Existing bool `json:"existing,omitempty"` // there was one
}

// Claim asks for tasks.
type Claim struct {
	Worker string        `json:"worker"`
	Queue  string        `json:"queue,omitempty"`
	Kinds  []string      `json:"kinds,omitempty"` // tasks of other kinds are left to others
	Max    int           `json:"max"`             // tasks
	Lease  time.Duration `json:"lease_ns"`        // how long the worker has them, unless it extends that
	// Bytes ends the claim early: it gets no more tasks when those that it has got have
	// so many bytes, by [Task.Size]. 0 is no limit.
	Bytes int `json:"bytes,omitempty"`
	// Remote says that the worker is in another process than the store: it lives on
	// when that ends, and so do its leases.
	Remote bool `json:"remote,omitempty"`
}

// Claimed is the answer to a claim.
type Claimed struct {
	Tasks []Task `json:"tasks,omitempty"`
	// Next is when a rate allows more, if that is all that there were fewer than
	// Max for. If it is zero, wait for a signal of [Store.Listen]. If it is not after
	// the claim, there may be more at once: the store has ended the claim early.
	Next time.Time `json:"next,omitzero"`
}

// Outcome is what became of a task.
type Outcome struct {
	ID    ID          `json:"id"`
	Token Token       `json:"token"`
	Kind  OutcomeKind `json:"on,omitempty"`

	Result     []byte    `json:"result,omitempty"`    // of a success
	Error      string    `json:"error,omitempty"`     // of a failure; or why the task is given back, for its step alone
	Permanent  bool      `json:"permanent,omitempty"` // a failure that no other attempt could mend
	RunAt      time.Time `json:"run_at,omitzero"`     // when to try again, after a failure or a snooze
	Checkpoint []byte    `json:"checkpoint,omitzero"` // for the next attempt; nil keeps what there is
}

// Worker is a Run that claims tasks.
type Worker struct {
	Name  string              `json:"name"` // unique to each Run of each start of a process
	Host  string              `json:"host,omitempty"`
	PID   int                 `json:"pid,omitempty"`
	Kinds map[string][]string `json:"kinds"` // by queue
	Slots int                 `json:"slots"`
	Since time.Time           `json:"since"`
}

// Heartbeat is a sign of life of one task.
type Heartbeat struct {
	ID         ID            `json:"id"`
	Token      Token         `json:"token"`
	Lease      time.Duration `json:"lease_ns,omitempty"` // from now on
	Progress   Progress      `json:"progress,omitzero"`
	Checkpoint []byte        `json:"checkpoint,omitzero"` // nil keeps what there is
}

// Answer is the answer to the heartbeat of one task.
type Answer struct {
	Stop   StopReason `json:"order,omitempty"`  // 0: go on
	Reason string     `json:"reason,omitempty"` // in the words of the author of the order
}

// Command is an order to all tasks that a filter finds.
type Command struct {
	Do     Order  `json:"do,omitempty"`
	Edit   *Edit  `json:"edit,omitempty"` // what OrderEdit changes
	Filter Filter `json:"filter,omitzero"`
	// All permits a Filter that sets no field and so finds every task of the store. Without
	// All such a command is ErrInvalid. A Filter that sets a field needs no All, and All
	// does not widen it.
	All    bool   `json:"all,omitempty"`
	Limit  int    `json:"limit,omitempty"`  // at most so many tasks; 0 is no limit
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

// Filter finds tasks. Its zero value finds all of them; each field that is set
// narrows that.
type Filter struct {
	// IDs finds the tasks with these IDs. Nil finds tasks with any ID; an empty list that is
	// not nil finds none. JSON keeps the two apart: a list without IDs is an empty array.
	IDs []ID `json:"ids,omitzero"`
	// Ending is the last hexadecimal digits of the ID, in lower case and without
	// dashes: unlike the first ones, they tell apart tasks of the same time. A store
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
	Limit  int  `json:"limit,omitempty"`  // 100 if it is 0; a page with fewer tasks is the last, but for Bytes
	// Bytes ends the page early: with the task with which its tasks have so many bytes, by
	// [Task.Size]. 0 is no limit. A page that has so many may not be the last.
	Bytes int `json:"bytes,omitempty"`
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
