package machine

import "github.com/stintgo/stint/queue/internal/journal"

// Rows is the durable storage of a machine.
type Rows = journal.Rows

// Change is one change of a batch of Rows.
type Change = journal.Change

// The first letters of the keys of rows, each with the rest of the key and the value.
// Texts of any length end with a zero byte, which names cannot contain. Times are
// nanoseconds since 1970, in eight bytes, big-endian.
const (
	rowTask       = "t"  // ID: a task
	rowUnique     = "u"  // queue, 0, Unique: the ID
	rowPoison     = "p"  // fingerprint, ID: a poison task
	rowSettings   = "s"  // queue: its settings
	rowKeyLimit   = "l"  // queue, 0, key: the limits of a key, which are settings
	rowSchedule   = "c"  // name: a schedule
	rowReserved   = "k"  // queue, 0, Unique: ID and submission time of a forgotten task, end of the reservation
	rowCascade    = "f"  // number: a cascade that is not complete
	rowMove       = "m"  // no rest: a move to or from another store, in JSON
	rowMoveID     = "ms" // no rest: the ID of the last move from here
	rowBase       = "e"  // no rest: added to the epoch; four bytes
	rowSubmission = "i"  // ID of the first: tasks that a transaction has written, in JSON; see txsubmissions.go
	rowRate       = "r"  // queue, 0, key or nothing: what is spent of a rate; eight and four bytes; see savedrates.go
	rowOutcome    = "o"  // ID, token in eight bytes: the outcome of an attempt, or empty, a fence; see txoutcomes.go
)
