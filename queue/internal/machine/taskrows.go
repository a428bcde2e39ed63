package machine

import (
	"bytes"
	"fmt"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// taskRows reads and writes the rows of tasks through the journal. The row of a running
// task is in its lease; the row of any other task is read each time. taskRows caches only
// the names of the last row read, which the next row may share, and reuses the buffer of
// the last row written. It counts what it reads and writes, so that a step can be bounded.
// The caller of each method holds the lock of the machine.
type taskRows struct {
	journal *journal.Journal
	queues  *queueSet

	names   record.Header // of the last row read: the next one probably has the same names
	scratch []byte        // the buffer of encode
	bytes   int           // the sizes of all rows read and written so far
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

// read reads the stored row of a task: for a running task, the row before its claim.
func (r *taskRows) read(t *task, row *record.Row) error {
	value, err := r.journal.Get(taskRow(&t.id))
	return r.decode(t, value, err, row)
}

// decode decodes a stored row, or returns the error err of reading it.
func (r *taskRows) decode(t *task, value []byte, err error, row *record.Row) error {
	r.bytes += len(value)
	if err == nil {
		err = row.Share(value, &r.names)
	}
	if err != nil {
		return fmt.Errorf("%w: read task %s: %w", queue.ErrUnavailable, t.id, err)
	}
	return nil
}

// write writes the row of a task.
func (r *taskRows) write(id queue.ID, row *record.Row) {
	r.journal.Set(taskRow(&id), r.encode(row), row.State == queue.Waiting)
}

// encode returns the row as bytes. Rows of up to maxScratch bytes have no spare capacity,
// because many of them stay in memory for long.
func (r *taskRows) encode(row *record.Row) []byte {
	b := record.Append(r.scratch[:0], row)
	r.bytes += len(b)
	if cap(b) > maxScratch {
		return b
	}
	r.scratch = b
	return bytes.Clone(b)
}

// rowSince returns read, the row of a task that was read at the mark since, unless the
// row is nil or has changed since then: then it reads the row like readable.
func (r *taskRows) rowSince(t *task, read *record.Row, since uint64) (record.Row, error) {
	if read == nil || r.journal.Changed(taskRow(&t.id), since) {
		return r.readable(t)
	}
	return *read, nil
}

// readable returns the row of a task. If the row cannot be read, readable returns the
// error and a row of the fields in memory, with the error text as Error.
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

// maxScratch is the largest length in bytes of a row whose memory is used for the next
// one.
const maxScratch = 16 << 10
