package machine

import (
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// headed is what the memory gets of the row of a task. Nearly all tasks of a large
// store wait and have nothing else to them: of those it is little, because what one
// processor hands to another is read again from far away.
type headed struct {
	id               queue.ID
	queue, key, kind string
	seq              uint64
	changed          int64
	tier             uint8 // from 0
	unique           bool
	rest             *rest // nil if the task only waits
}

// rest is the head of any other task, with the bytes of its row if more of that is
// needed.
type rest struct {
	head  record.Head
	value []byte
}

// onlyWaits reports whether a task may start, and there is nothing else to it.
func onlyWaits(h *record.Head) bool {
	return h.State == queue.Waiting && h.Crashes == 0 && h.Deadline.IsZero() && !joins(h)
}
