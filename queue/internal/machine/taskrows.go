package machine

import (
	"bytes"
	"fmt"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// taskRows reads and writes the rows of tasks through the journal. A running task's row
// is in its lease; that of any other task is read anew each time. Nothing is cached here
// but the names of the row that was read last, which the next row shares, and the
// memory of the row that was written last. The caller of each method holds the lock of
// the machine.
type taskRows struct {
	journal *journal.Journal
	queues  *queueSet

	names   record.Head // the row that was read last, whose names are likely to come again
	scratch []byte      // for the row that is written
}

// row reads the row of a task. Its payload, checkpoint and result must not be
// changed: see view.
func (r *taskRows) row(t *task) (row record.Row, err error) {
	if l := t.leased(); l != nil {
		return l.row, nil
	}
	err = r.read(t, &row)
	return row, err
}

// read reads the row of a task that is not running, or as it was before that.
func (r *taskRows) read(t *task, row *record.Row) error {
	value, err := r.journal.Get(taskRow(&t.id))
	return r.decode(t, value, err, row)
}

// decode decodes what was read, or returns the error of reading it.
func (r *taskRows) decode(t *task, value []byte, err error, row *record.Row) error {
	if err == nil {
		err = row.Share(value, &r.names)
	}
	if err != nil {
		return fmt.Errorf("%w: read task %s: %w", queue.ErrUnavailable, t.id, err)
	}
	return nil
}

// write writes the row of a task, and returns how many bytes it has.
func (r *taskRows) write(id queue.ID, row *record.Row) (size int) {
	value := r.encode(row)
	r.journal.Set(taskRow(&id), value, row.State == queue.Waiting)
	return len(value)
}

// encode returns the row as bytes. Rows that are not long have no spare capacity: many of
// them stay in memory for long.
func (r *taskRows) encode(row *record.Row) []byte {
	b := record.Append(r.scratch[:0], row)
	if cap(b) > mostScratch {
		return b
	}
	r.scratch = b
	return bytes.Clone(b)
}

// rowSince returns the row of a task that was read before, unless it has changed since a
// mark; or, with an error, what is in memory of the task.
func (r *taskRows) rowSince(t *task, read *record.Row, since uint64) (record.Row, error) {
	if read == nil || r.journal.Changed(taskRow(&t.id), since) {
		return r.readable(t)
	}
	return *read, nil
}

// readable returns the row of a task; or, if it cannot be read, what is in memory of the
// task, with the reason as its Error.
func (r *taskRows) readable(t *task) (record.Row, error) {
	row, err := r.row(t)
	if err == nil {
		return row, nil
	}
	known := queue.Task{ID: t.id, State: t.state, Error: err.Error()}
	known.Queue, known.Tier = r.queues.of(t).name, stint.Lowest+stint.Priority(t.tier)
	return record.Row{Task: known}, err
}

// taskRow is the key of a task's row.
func taskRow(id *queue.ID) string { return rowTask + string(id[:]) }

// mostScratch is the largest length in bytes of a row whose memory is used for the next
// one.
const mostScratch = 16 << 10
