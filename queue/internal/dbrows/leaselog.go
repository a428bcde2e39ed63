package dbrows

import (
	"context"
	"fmt"
	"sync"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/lease"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/internal/stall"
)

// LeaseLog is the lease log of a machine on the database server. An entry is as durable
// as a batch, since another process may lead next. The calls of Put that arrive while
// entries are written share the next write.
//
// The entries of a write share rows, because the server takes as long for a small row as for
// one of rowSize. A row is written again when the last of its leases has ended.
type LeaseLog struct {
	rows *Rows

	mu      sync.Mutex // guards the fields below
	slots   lease.Slots
	written lease.Rows
	next    *put // of the calls that arrive now
	writing bool // a call writes
	puts    uint64
}

// putBits is the number of bits of the number of a put that count the puts of an epoch: more
// than a leader can make. With an epoch of 24 bits the number fits into a signed integer.
const putBits = 39

// rowSize is the largest size of a row in bytes, some 25 entries. PostgreSQL compresses larger
// values, and stores them outside the table.
const rowSize = 1800

// put is one write of entries.
type put struct {
	entries []machine.SlotEntry
	turn    chan struct{} // closed when the write before it has ended
	done    chan struct{} // closed when err is set
	err     error
}

func newPut() *put { return &put{turn: make(chan struct{}), done: make(chan struct{})} }

var _ machine.LeaseStorage = (*LeaseLog)(nil)

// LeaseLog returns the lease log beside the rows.
func (r *Rows) LeaseLog() *LeaseLog { return &LeaseLog{rows: r, next: newPut()} }

// Recall is as [machine.LeaseStorage] says. A row without an entry is free.
func (l *LeaseLog) Recall(fn func(slot int, e machine.LeaseEntry)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make(map[int][]machine.LeaseEntry)
	last := 0
	limit := attempt / 2
	err := l.rows.attempts.try(l.rows.attempts.ctx, func(ctx context.Context) error {
		limit = min(2*limit, attemptLast)
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		return l.rows.db.Leases(ctx, func(row LeaseRow) {
			var entries []machine.LeaseEntry
			lease.DecodeRow(row.Entries, func(e machine.LeaseEntry) { entries = append(entries, e) })
			found[row.Number] = entries
			last = max(last, row.Number)
		})
	})
	if err != nil {
		return fmt.Errorf("read the lease log: %w", err)
	}
	for row := 1; row <= last; row++ {
		var slots []int
		for _, e := range found[row] {
			slot := l.slots.Recall(e.Token)
			slots = append(slots, slot)
			fn(slot, e)
		}
		l.written.Append(slots...)
	}
	return nil
}

// Reserve is as [machine.LeaseStorage] says. It does not fail: the log grows.
func (l *LeaseLog) Reserve(token queue.Token) (slot int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot, ok := l.slots.Reserve(token)
	if !ok {
		slot = l.slots.Recall(token)
	}
	return slot, nil
}

// Put is as [machine.LeaseStorage] says. It writes all entries or none; after an error they
// may be on the server nevertheless. Such an entry stays until its row is written again, so
// the next leader may take its task for one that ran and was lost.
func (l *LeaseLog) Put(entries []machine.SlotEntry) (n int, err error) {
	if len(entries) == 0 {
		return 0, nil // it would not be visible in next
	}
	l.mu.Lock()
	p := l.next
	first := len(p.entries) == 0
	p.entries = append(p.entries, entries...)
	if first && !l.writing {
		l.writing = true
		close(p.turn)
	}
	l.mu.Unlock()
	if first {
		<-p.turn
		l.write(p)
	}
	<-p.done
	if p.err != nil {
		return 0, p.err
	}
	return len(entries), nil
}

// write writes what has been collected for p, and lets the next call write.
func (l *LeaseLog) write(p *put) {
	l.mu.Lock()
	l.next = newPut()
	l.puts++
	number := uint64(l.rows.leads.epoch)<<putBits | l.puts
	rows := l.encode(p.entries)
	l.mu.Unlock()
	if len(rows) > 0 {
		ctx, stop := context.WithTimeout(l.rows.attempts.ctx, stall.AnswerWithin)
		p.err = l.rows.attempts.try(ctx, func(ctx context.Context) error {
			return l.rows.db.PutLeases(ctx, l.rows.leads.epoch, number, rows)
		})
		stop()
	}
	if p.err != nil {
		p.err = fmt.Errorf("no task starts, because its lease cannot be recorded: %w", p.err)
	}
	close(p.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing = len(l.next.entries) > 0; l.writing {
		close(l.next.turn)
	}
}

// encode takes rows for the entries whose slots have not been freed. The caller holds the lock.
func (l *LeaseLog) encode(entries []machine.SlotEntry) (rows []LeaseRow) {
	var row []byte
	var slots []int
	next := func() {
		if len(slots) > 0 {
			rows = append(rows, LeaseRow{Number: l.written.Take(slots...), Entries: row})
		}
		row, slots = nil, nil
	}
	for i := range entries {
		e := &entries[i]
		if !l.slots.Owns(e.Slot, e.Token) {
			continue
		}
		var b [lease.Size]byte
		used := lease.Encode(&b, &e.LeaseEntry)
		if len(row)+used > rowSize {
			next()
		}
		row, slots = append(row, b[:used]...), append(slots, e.Slot)
	}
	next()
	return rows
}

// Free is as [machine.LeaseStorage] says.
func (l *LeaseLog) Free(slot int, token queue.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots.Owns(slot, token) {
		l.slots.Free(slot, token)
		l.written.Free(slot)
	}
}
