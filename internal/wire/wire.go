// Package wire is what a store over HTTP and its server say to each other:
// where the calls of queue.Store are, what their bodies are, and how errors are
// told. Everything else is JSON of the contract's own types.
//
// A call is a POST with a body of JSON, or a GET if it has next to nothing to
// say, and is answered with 200 and JSON, or with a [Problem]. What is answered
// without an end is a stream of lines, each a value in JSON; an empty line says
// that the server is alive.
package wire

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// Where the calls are. The first part is the version: a server of another one
// answers 404, and does nothing that was meant otherwise.
const (
	Submit    = "/v1/submit"    // POST SubmitCall: Receipts
	Claim     = "/v1/claim"     // POST queue.Claim: queue.Claimed
	Settle    = "/v1/settle"    // POST SettleCall: Settled
	Beat      = "/v1/beat"      // POST BeatCall: Answers
	Command   = "/v1/command"   // POST queue.Command: Changed
	Find      = "/v1/find"      // POST FindCall: Tasks; a filter is too long for a URL
	Explain   = "/v1/explain"   // GET with an id: Reasons
	Stats     = "/v1/stats"     // GET: queue.Stats
	Configure = "/v1/configure" // POST ConfigureCall: nothing
	Pause     = "/v1/pause"     // POST PauseCall: nothing
	Settings  = "/v1/settings"  // GET: AllSettings
	Schedules = "/v1/schedules" // GET: AllSchedules
	// Reschedule is a POST of queue.Reschedule: nothing.
	Reschedule = "/v1/reschedule"

	Tend  = "/v1/tend"  // POST TendCall: Tended
	Ready = "/v1/ready" // GET with queues: a stream of Signal
	Watch = "/v1/watch" // GET: a stream of queue.Event
	// Log is a GET with an id, and a Range if not all is wanted: Bytes. With a size
	// it waits, no longer than Alive, until the log has another one or the task is
	// finished. See LogFile for logs that lose their beginning.
	Log = "/v1/log"
	// Jobs is a POST of JobsCall: JobsState.
	Jobs = "/v1/jobs"
)

// The parameters of the calls by GET.
const (
	QueryID    = "id"    // of a task, once
	QueryQueue = "queue" // once for each queue
	QuerySize  = "size"  // of a log, in bytes, as the client knows it; 0 also of one that is not there
)

// The headers.
const (
	// Now is the time by the clock of who sends it, in RFC 3339 with nanoseconds.
	// If the two are a second or more apart, the server converts the times of a call to
	// its own clock, and the answer with all its times, Now among them, to the
	// client's. Else the client knows from those of a call and its answer how far apart
	// the clocks are.
	Now = "Stint-Now"
	// Key names a Claim or a Command, which would not be the same if it were done
	// again, so that a repetition is told what the first has done. It is chosen at
	// random, and answered as draft-ietf-httpapi-idempotency-key-header says: with
	// 422 if another call has had it.
	Key = "Idempotency-Key"
	// Client names the program that calls, in any words but none. Every call has it:
	// browsers let no page of another site send a header of such a name, so what has
	// it comes from no such page, whatever else the browser says or leaves out.
	Client = "Stint-Client"
	// LogFile identifies the file that the bytes of a log are counted in. It changes when
	// the log loses its beginning, and not when the log grows or the server is started
	// again. The answer to Log has it, unless the server does not know. If the request has
	// another one than the log, it is answered at once and with all of the log, whatever
	// its Range and size: what the client knows is of another file.
	LogFile = "Stint-Log-File"
)

// What a call may ask for at most.
const (
	ClaimMost = 1000 // tasks
	PageMost  = 1000 // tasks
	// BytesMost is how many bytes of tasks, by their Size, an answer to a Claim or a Find
	// has before its last one. A call that names more, or none, is answered as if it
	// named this.
	BytesMost  = 16 << 20
	QueuesMost = 256 // of a stream of signals
)

// The types of bodies.
const (
	JSON        = "application/json"
	ProblemJSON = "application/problem+json"
	Lines       = "application/x-ndjson"
	Bytes       = "application/octet-stream"
)

// Alive is how often a server writes an empty line to a stream that has nothing
// to say. A client that hears nothing for thrice as long takes the server for
// dead.
const Alive = 10 * time.Second

// JobsCall asks how many tasks the server's own process runs at once, and changes that
// if To is not empty. To is what stint serve -j takes, as in 8 or 50%.
type JobsCall struct {
	To string `json:"to,omitempty"`
}

// JobsState is how many tasks may run at once, and how many do.
type JobsState struct {
	Most    int      `json:"most"`
	Running int      `json:"running"`
	Notes   []string `json:"notes,omitempty"` // what a user should know of a change
}

// SubmitCall and Receipts are Submit's.
type SubmitCall struct {
	Tasks []queue.NewTask `json:"tasks"`
}

// Receipts are in the order of the tasks.
type Receipts struct {
	Receipts []queue.Receipt `json:"receipts"`
}

// SettleCall and Settled are Settle's.
type SettleCall struct {
	Outcomes []queue.Outcome `json:"outcomes"`
}

// Settled has the answer to each outcome: nil if it was taken.
type Settled struct {
	Answers []*Problem `json:"answers"`
}

// BeatCall and Answers are Beat's.
type BeatCall struct {
	Worker queue.Worker `json:"worker"`
	Beats  []queue.Beat `json:"beats"`
}

// Answers are in the order of the beats.
type Answers struct {
	Answers []queue.Answer `json:"answers"`
}

// Changed is how many tasks a command has changed.
type Changed struct {
	Changed int `json:"changed"`
}

// FindCall and Tasks are Find's.
type FindCall struct {
	Filter queue.Filter `json:"filter"`
	Page   queue.Page   `json:"page"`
}

// Tasks is a page. More says that it may have ended early because of the bytes of its
// tasks: then it is not known to be the last one, though it has fewer than were asked for.
type Tasks struct {
	Tasks []queue.Task `json:"tasks"`
	More  bool         `json:"more,omitempty"`
}

// Reasons are what Explain finds.
type Reasons struct {
	Reasons []queue.Reason `json:"reasons"`
}

// ConfigureCall is Configure's.
type ConfigureCall struct {
	Queue  string       `json:"queue"`
	Change queue.Change `json:"change"`
}

// PauseCall is PauseQueue's.
type PauseCall struct {
	Queue string       `json:"queue"`
	Pause *queue.Pause `json:"pause"` // nil ends one
}

// AllSettings are those of each queue.
type AllSettings struct {
	Settings map[string]queue.Configured `json:"settings"`
}

// AllSchedules are in the order of their names.
type AllSchedules struct {
	Schedules []queue.Schedule `json:"schedules"`
}

// TendCall and Tended are Tend's.
type TendCall struct {
	Limit int `json:"limit"`
}

// Tended says when there is more to do.
type Tended struct {
	Next time.Time `json:"next,omitzero"`
}

// Signal says that tasks of a queue may have become claimable.
type Signal struct {
	Queue string `json:"queue"`
}
