// Package wire is the protocol between a store over HTTP and its server: the paths of the
// calls of queue.Store, the types of their bodies, and the form of errors. All
// other types are those of package queue.
//
// A call is a POST with a body of JSON, or a GET if it has few parameters, and is
// answered with 200 and JSON, or with a [Problem]. Submit, Claim and Settle can also be
// packed, see [Pack]. An endless response is a stream of
// lines, each a value in JSON; an empty line is a sign of life of the server.
package wire

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// The paths of the calls. The first part is the version: a server of another version
// answers 404, so that it does not misinterpret the call. Version 1 had other names for
// Heartbeat and Maintain, and an empty list of IDs that found every task.
const (
	Submit    = "/v2/submit"    // POST SubmitCall: Receipts
	Claim     = "/v2/claim"     // POST queue.Claim: queue.Claimed
	Settle    = "/v2/settle"    // POST SettleCall: Settled
	Heartbeat = "/v2/heartbeat" // POST HeartbeatCall: Answers
	Command   = "/v2/command"   // POST queue.Command: Changed
	Find      = "/v2/find"      // POST FindCall: Tasks; a POST as a filter is too long for a URL
	Explain   = "/v2/explain"   // GET with an id: Reasons
	Stats     = "/v2/stats"     // GET: queue.Stats
	Configure = "/v2/configure" // POST ConfigureCall: empty
	Pause     = "/v2/pause"     // POST PauseCall: empty
	Settings  = "/v2/settings"  // GET: AllSettings
	Schedules = "/v2/schedules" // GET: AllSchedules
	// Reschedule is a POST of queue.Reschedule: empty.
	Reschedule = "/v2/reschedule"

	Maintain = "/v2/maintain" // POST MaintainCall: Maintained
	Ready    = "/v2/ready"    // GET with queues: a stream of Signal
	Watch    = "/v2/watch"    // GET: a stream of queue.Event
	// Log is a GET with an id, and a Range header for a part: Bytes. With a size
	// it waits, at most Alive, until the size of the log differs or the task is
	// finished. See LogFile for logs that lose their beginning.
	Log = "/v2/log"
	// Jobs is a POST of JobsCall: JobsState.
	Jobs = "/v2/jobs"
)

// The parameters of the GET calls.
const (
	QueryID    = "id"    // of a task, once
	QueryQueue = "queue" // once for each queue
	QuerySize  = "size"  // of a log, in bytes, as the client knows it; 0 also if there is no log
)

// The headers.
const (
	// Now is the time by the clock of the sender, in RFC 3339 with nanoseconds. If the
	// two clocks are a second or more apart, the server converts the times of a call to
	// its own clock, and all times of the answer, Now among them, to the client's.
	// Otherwise the client computes the difference from the headers of a call and its
	// answer.
	Now = "Stint-Now"
	// Key identifies a Claim or a Command, which are not idempotent, so that a repetition
	// gets the answer of the first. It is chosen at random. Following
	// draft-ietf-httpapi-idempotency-key-header, the answer is 422 if another call has
	// had it.
	Key = "Idempotency-Key"
	// Client names the calling program, in any non-empty form. It is required in every
	// call: browsers do not let a page of another site send a header with such a name, so
	// a call that has it does not come from such a page, whatever other headers the
	// browser sends.
	Client = "Stint-Client"
	// LogFile identifies the file in which the bytes of a log are counted. It changes
	// when the log loses its beginning, and not when the log grows or the server is
	// restarted. The answer to Log has it, if the server knows it. If the request has
	// another one than the log, it is answered at once and with all of the log, whatever
	// its Range and size: what the client knows is of another file.
	LogFile = "Stint-Log-File"
	// Partial, with any value, says that the client understands answers with a [Part]. Without it,
	// a server answers with the error of which such an answer has a part.
	Partial = "Stint-Partial"
)

// The maximum that a call may ask for.
const (
	ClaimMost = 1000 // tasks
	PageMost  = 1000 // tasks
	// BytesMost is how many bytes of tasks, by their Size, an answer to a Claim or a Find
	// may have before its last task. A call that asks for more, or does not say, is
	// answered as if it asked for this.
	BytesMost  = 16 << 20
	QueuesMost = 256 // queues of a stream of signals
)

// The types of bodies.
const (
	JSON        = "application/json"
	ProblemJSON = "application/problem+json"
	Lines       = "application/x-ndjson"
	Bytes       = "application/octet-stream"
)

// Alive is how often a server writes an empty line to a stream without other
// output. A client that receives nothing for three times as long considers the server
// dead.
const Alive = 10 * time.Second

// JobsCall asks how many tasks the server's own process runs at once, and changes that
// number if To is not empty. To has the form of the argument of stint serve -j, as in 8
// or 50%.
type JobsCall struct {
	To string `json:"to,omitempty"`
}

// JobsState is how many tasks may run at once, and how many do.
type JobsState struct {
	Most    int      `json:"most"`
	Running int      `json:"running"`
	Notes   []string `json:"notes,omitempty"` // what a user should know about a change
}

// SubmitCall is the body of Submit, and Receipts is its answer.
type SubmitCall struct {
	Tasks []queue.NewTask `json:"tasks"`
}

// Receipts are in the order of the tasks.
type Receipts struct {
	Receipts []queue.Receipt `json:"receipts"`
}

// SettleCall is the body of Settle, and Settled is its answer.
type SettleCall struct {
	Outcomes []queue.Outcome `json:"outcomes"`
}

// Settled has the result of each outcome: nil if it was accepted.
type Settled struct {
	Answers []*Problem `json:"answers"`
}

// HeartbeatCall is the body of Heartbeat, and Answers is its answer.
type HeartbeatCall struct {
	Worker     queue.Worker      `json:"worker"`
	Heartbeats []queue.Heartbeat `json:"heartbeats"`
}

// Answers are in the order of the heartbeats.
type Answers struct {
	Answers []queue.Answer `json:"answers"`
}

// Changed is how many tasks a command has changed.
type Changed struct {
	Changed int `json:"changed"`
}

// FindCall is the body of Find, and Tasks is its answer.
type FindCall struct {
	Filter queue.Filter `json:"filter"`
	Page   queue.Page   `json:"page"`
}

// Tasks is a page. More says that the page may have ended early because of the bytes of
// its tasks: it may then not be the last one although it has fewer tasks than were asked
// for.
type Tasks struct {
	Tasks []queue.Task `json:"tasks"`
	More  bool         `json:"more,omitempty"`
	Part
}

// Part says which groups an answer lacks. It is in the answers of calls that may have a
// [queue.PartialError].
type Part struct {
	Missing []queue.MissingGroup `json:"missing,omitempty"`
}

// SetMissing makes an answer one with a part.
func (p *Part) SetMissing(groups []queue.MissingGroup) { p.Missing = groups }

// Err returns a [queue.PartialError], or nil if no group is missing.
func (p *Part) Err() error {
	if len(p.Missing) == 0 {
		return nil
	}
	return &queue.PartialError{Missing: p.Missing}
}

// Reasons is the answer to Explain.
type Reasons struct {
	Reasons []queue.Reason `json:"reasons"`
}

// ConfigureCall is the body of Configure.
type ConfigureCall struct {
	Queue  string       `json:"queue"`
	Change queue.Change `json:"change"`
}

// PauseCall is the body of Pause.
type PauseCall struct {
	Queue string       `json:"queue"`
	Pause *queue.Pause `json:"pause"` // nil ends a pause
}

// AllSettings are the settings of each queue.
type AllSettings struct {
	Settings map[string]queue.Configured `json:"settings"`
	Part
}

// AllSchedules are sorted by name.
type AllSchedules struct {
	Schedules []queue.ScheduleState `json:"schedules"`
	Part
}

// MaintainCall is the body of Maintain, and Maintained is its answer.
type MaintainCall struct {
	Limit int `json:"limit"`
}

// Maintained says when more maintenance is due.
type Maintained struct {
	Next time.Time `json:"next,omitzero"`
}

// Signal says that tasks of a queue may have become claimable.
type Signal struct {
	Queue string `json:"queue"`
}
