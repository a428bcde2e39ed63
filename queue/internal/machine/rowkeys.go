package machine

import "github.com/stintgo/stint/queue/internal/journal"

// Rows is where a machine keeps what must survive: the seam of its journal.
type Rows = journal.Rows

// Change is one change of a batch of Rows.
type Change = journal.Change

// The rows, by what their keys begin with. What follows in the key is written
// behind each; texts of any content end with a zero byte, which names cannot
// contain, and times are nanoseconds since 1970, in eight bytes, big-endian.
const (
	rowTask     = "t" // ID: a task
	rowUnique   = "u" // queue, 0, Unique: the ID
	rowPoison   = "p" // fingerprint, ID: a task that has crashed its workers
	rowSettings = "s" // queue: what is set for it
	rowSchedule = "c" // name: a schedule
	rowKept     = "k" // queue, 0, Unique: the ID of a forgotten task, when it was submitted, until when the name is taken
	rowCascade  = "f" // number: tasks that are still to be cancelled, because a task before them was forgotten
)
