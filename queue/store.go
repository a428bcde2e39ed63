package queue

import (
	"context"
	"time"

	"github.com/stintgo/stint"
)

// Store keeps tasks and makes their transitions, atomically and durably. It is
// the seam between a [Queue], which has the policy that can live in Go once, and
// where tasks are kept: memory, files, PostgreSQL, Redis. Package storetest is
// this contract as tests; every store passes all of it.
//
// Time. Every method that changes something takes the time at which it
// happens, and a store reads no clock. A store that many hosts share uses its
// own server's clock instead, and says so. Times may go backwards from call to
// call: a store takes the latest that it has seen.
//
// Durability. What a method has answered survives a crash of the process and
// loss of power, but for what it says itself: a claim need not survive power
// loss, after which its tokens are void. An error that wraps [ErrUnavailable]
// means that nothing is known to have been done; the caller may repeat the call.
// All methods may be repeated: a second Submit of the same ID, or a second
// Settle with the same token, is answered like the first.
//
// Concurrency. All methods may be called at any time from any goroutine. Each
// is one step: all of it, or nothing of it, is seen by others and found after a
// crash. Contexts end waiting, not the step: a call that was cancelled may or
// may not have been done.
type Store interface {
	// Submit accepts tasks, all or none, in this order. Their IDs, chosen by the
	// caller, must be new. A task with the Unique of another that is remembered, in
	// the store or before it in the same call, is not accepted; the receipt has
	// that one's ID instead. Errors: ErrInvalid, ErrTooLarge, ErrFull.
	Submit(ctx context.Context, now time.Time, tasks []NewTask) ([]Receipt, error)

	// Claim leases up to Max tasks of a queue to a worker: those whose turn it is,
	// of the kinds that it knows. It never waits; Claimed tells when to come back.
	Claim(ctx context.Context, now time.Time, c Claim) (Claimed, error)

	// Settle ends leases with what became of the tasks. The answer has an error
	// for each: nil, or ErrStale if the token is not that of a live lease.
	Settle(ctx context.Context, now time.Time, outcomes []Outcome) ([]error, error)

	// Beat says that a worker lives, extends its leases, and keeps what its tasks
	// report. The answer has what the worker is to do about each.
	Beat(ctx context.Context, now time.Time, w Worker, beats []Beat) ([]Answer, error)

	// Command does something to all tasks that a filter finds, up to a limit, and
	// returns how many have changed, or, running, have been told to.
	Command(ctx context.Context, now time.Time, c Command) (int, error)

	// Find returns tasks a page at a time; see [Page]. Like Explain, Stats and
	// Watch it may show what has been decided and is not durable yet: after a
	// crash that may not have been.
	Find(ctx context.Context, f Filter, p Page) ([]Task, error)

	// Explain says why a task waits, the binding reason first: nothing if it runs
	// or is finished. Errors: ErrNotFound.
	Explain(ctx context.Context, now time.Time, id ID) ([]Reason, error)

	// Stats counts.
	Stats(ctx context.Context, now time.Time) (Stats, error)

	// Configure changes what is set for a queue, or for all of them if it is "",
	// and Settings returns it.
	Configure(ctx context.Context, now time.Time, queue string, s Settings) error
	Settings(ctx context.Context) (map[string]Settings, error)

	// Tend does what is due: tasks whose RunAt or Deadline has come, leases that
	// ran out, finished tasks that are kept no longer. It makes at most
	// limit changes, and returns when there is more to do: never, if that is zero.
	Tend(ctx context.Context, now time.Time, limit int) (next time.Time, err error)

	// Ready returns a channel of a queue that receives, after tasks of it may have
	// become claimable, at least once. It holds one signal.
	Ready(queue string) <-chan struct{}

	// Watch calls fn for every change of any task's state from now on, in their
	// order, until ctx ends. A watcher that is too slow misses some and is told
	// how many.
	Watch(ctx context.Context, fn func(Event)) error

	// Close ends all calls with ErrClosed. Leases stay as they are.
	Close() error
}

// NewTask is a task to submit.
type NewTask struct {
	ID ID
	Spec
}

// Receipt is the answer to a task submitted.
type Receipt struct {
	ID       ID   `json:"id"`                 // the task's, or that of the one with the same Unique
	Existing bool `json:"existing,omitempty"` // there was one
}

// Claim asks for tasks.
type Claim struct {
	Worker string
	Queue  string
	Kinds  []string      // tasks of other kinds are left to others
	Max    int           // tasks
	Lease  time.Duration // how long the worker has them, unless it extends that
}

// Claimed is the answer to a claim.
type Claimed struct {
	Tasks []Task
	// Next is when a rate allows more, if that is all that there were fewer than
	// Max for. If it is zero, wait for [Store.Ready].
	Next time.Time
}

// Outcome is what became of a task.
type Outcome struct {
	ID    ID
	Token Token
	On    Trigger // OnSuccess, OnFailure, OnSnooze, OnGiveBack

	Result     []byte    // of a success
	Error      string    // of a failure
	Permanent  bool      // a failure that no other attempt could mend
	RunAt      time.Time // when to try again, after a failure or a snooze
	Checkpoint []byte    // for the next attempt; nil keeps what there is
}

// Worker is one who claims tasks.
type Worker struct {
	Name  string              `json:"name"` // unique to the process, and to each start of it
	Host  string              `json:"host,omitempty"`
	PID   int                 `json:"pid,omitempty"`
	Kinds map[string][]string `json:"kinds"` // by queue
	Slots int                 `json:"slots"`
	Since time.Time           `json:"since"`
}

// Beat is a sign of life of one task.
type Beat struct {
	ID         ID
	Token      Token
	Lease      time.Duration // from now on
	Progress   Progress
	Checkpoint []byte // nil keeps what there is
}

// Answer is what a worker is told about a task that it runs: 0 for nothing,
// OnPause or OnCancel to give it up, OnLost if it has it no longer.
type Answer struct {
	Order  Trigger
	Reason string // in the words of who gave the order
}

// Command is something that somebody wants done to tasks.
type Command struct {
	Do     Trigger // OnPause, OnResume, OnCancel, OnRetry, OnForget
	Filter Filter
	Limit  int    // at most so many tasks; 0 is no limit
	By     string // who said so
	Reason string // and why
}

// Filter finds tasks. Its zero value finds all of them; each field that is set
// narrows that.
type Filter struct {
	IDs    []ID
	Queue  string
	Kind   string
	Key    string
	Group  string
	Batch  ID
	Worker string // that has the lease
	States []State
	Labels map[string]string // all of them
	Error  string            // is a part of the task's error
	From   time.Time         // submitted at this time or later
	To     time.Time         // submitted before
}

// Page is a part of what a filter finds. Tasks come in the order of their IDs,
// which is that of their age.
type Page struct {
	After  ID   // start behind this one; zero: at the beginning
	Newest bool // the newest first
	Limit  int  // 100 if it is 0; a page with fewer tasks is the last
}

// Settings are what operators set for a queue. The zero value sets no limit.
type Settings struct {
	Max      int        `json:"max,omitempty"` // tasks that run at once, in the whole cluster
	Caps     stint.Caps `json:"caps,omitzero"`
	PerKey   int        `json:"per_key,omitempty"`  // and of one key
	Rate     Rate       `json:"rate,omitzero"`      // tasks that start
	KeyRate  Rate       `json:"key_rate,omitzero"`  // and of one key
	Pending  int        `json:"pending,omitempty"`  // unfinished tasks; more are refused with ErrFull
	Paused   *Pause     `json:"paused,omitempty"`   // nothing starts
	Keep     Retention  `json:"keep,omitzero"`      // of what has succeeded or been cancelled
	KeepDead Retention  `json:"keep_dead,omitzero"` // of the dead letters
}

// Rate is so many in a time, and at once after an idle time. The zero Rate is no
// limit.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst,omitempty"` // 1 if it is 0
}

// Pause is who paused a queue, and since when.
type Pause struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// Retention is how long finished tasks are kept. Zero values are the defaults:
// a day, and 100,000 tasks; for dead letters 30 days, and 100,000.
type Retention struct {
	Age   time.Duration `json:"age_ns,omitempty"`
	Count int           `json:"count,omitempty"` // of a queue
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
