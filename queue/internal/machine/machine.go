// Package machine is the state machine of durable tasks that memstore and
// filestore share. It decides in memory, where an entry for each unfinished task
// keeps the order, and keeps what must survive in rows behind a seam of four
// calls, [Rows].
//
// Every call is one step under one lock: it decides, changes the memory, and
// writes rows to a journal; then, without the lock, it waits until they are
// durable. So a call that has been answered survives what the rows survive. If
// they cannot be written the memory is ahead of them, and nothing more is
// accepted: the machine has to be opened again.
//
// The machine reads no clock and starts no goroutine.
package machine

import (
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Config is how a machine is set up. The zero value is a good default.
type Config struct {
	// MaxPayload, MaxResult and MaxCheckpoint are in bytes: 1 MiB if they are 0.
	MaxPayload, MaxResult, MaxCheckpoint int
	// WatchBuffer is how many events a watcher may be behind: 1024 if it is 0.
	WatchBuffer int
	// Epoch is larger than those of earlier machines on the same rows, and below
	// 2²⁴: tokens and ages begin with it, and so grow over all of them.
	Epoch uint32
	// Room is asked before tasks are accepted, and says why they cannot be, as with
	// a disk that is nearly full; nil if they can. It must be fast.
	Room func() error
}

// epochShift leaves each epoch a million million claims and submissions.
const epochShift = 40

// Machine is a [queue.Store].
type Machine struct {
	cfg     Config
	journal *journal

	mu         sync.Mutex // guards all below; before the journal's
	closed     bool
	now        int64 // the latest time seen, nanoseconds since 1970
	seq        uint64
	tokens     uint64
	tasks      map[queue.ID]*task // the unfinished ones
	lines      map[string]*line
	settings   map[string]queue.Settings
	unique     map[uniqueKey]queue.ID // of unfinished tasks
	batches    map[queue.ID]*batch
	dependents map[queue.ID][]*task       // that wait for a task to succeed
	poison     map[fingerprint][]queue.ID // dead tasks that have crashed their workers
	workers    map[string]*worker
	due        timers // of tasks
	rates      timers // of keys
	ends       ends   // finished tasks, in the order in which they are forgotten
	watchers   map[*watcher]struct{}
}

var _ queue.Store = (*Machine)(nil)

type uniqueKey struct{ queue, unique string }

// begin takes the lock for a step. After an error it has not.
func (m *Machine) begin(now time.Time) error {
	m.mu.Lock()
	err := m.journal.failed()
	if m.closed {
		err = queue.ErrClosed
	}
	if err != nil {
		m.mu.Unlock()
		return err
	}
	m.now = max(m.now, now.UnixNano())
	return nil
}

// end gives up the lock, and returns when what has been written is durable.
func (m *Machine) end() error {
	mark := m.journal.seal()
	m.mu.Unlock()
	return m.journal.sync(mark)
}

// time is the present step's.
func (m *Machine) time() time.Time { return timeOf(m.now) }

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// line returns a queue, made if there is none.
func (m *Machine) line(name string) *line {
	l := m.lines[name]
	if l == nil {
		l = newLine(name)
		m.lines[name] = l
		m.configure(l)
	}
	return l
}

// row reads the row of an unfinished task.
func (m *Machine) row(t *task) (record.Row, error) {
	if l := t.leased(); l != nil {
		return l.row, nil
	}
	return m.read(rowTask, t.id)
}

// read reads a task's row of a sort. Errors: ErrNotFound.
func (m *Machine) read(sort string, id queue.ID) (record.Row, error) {
	value, err := m.journal.get(sort + string(id[:]))
	if err != nil {
		return record.Row{}, fmt.Errorf("%w: read task %s: %w", queue.ErrUnavailable, id, err)
	}
	if value == nil {
		return record.Row{}, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	row, err := record.Decode(value)
	if err != nil {
		return record.Row{}, fmt.Errorf("%w: read task %s: %w", queue.ErrUnavailable, id, err)
	}
	return row, nil
}

// write writes the row of an unfinished task.
func (m *Machine) write(t *task, row *record.Row) {
	m.journal.set(rowTask+string(t.id[:]), encode(row))
	t.mark = m.journal.mark()
}

// Ready is as [queue.Store] says.
func (m *Machine) Ready(name string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		name = defaultQueue
	}
	return m.line(name).ready
}

// Close is as [queue.Store] says.
func (m *Machine) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	for w := range m.watchers {
		w.stop()
	}
	mark := m.journal.seal()
	m.mu.Unlock()
	err := m.journal.sync(mark)
	if closing := m.journal.rows.Close(); err == nil {
		err = closing
	}
	return err
}

// encode is the row as bytes, made in one piece: the names, times and steps of
// most tasks take less than the room that is left for them.
func encode(row *record.Row) []byte {
	const names, step = 160, 48
	size := names + len(row.Payload) + len(row.Checkpoint) + len(row.Result) + step*len(row.Steps)
	return record.Append(make([]byte, 0, size), row)
}
