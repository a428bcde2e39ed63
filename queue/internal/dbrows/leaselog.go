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
type LeaseLog struct {
	rows *Rows

	mu      sync.Mutex // guards the fields below
	slots   lease.Slots
	next    *put // of the calls that arrive now
	writing bool // a call writes
	puts    uint64
}

// putBits is the number of bits of the number of a put that count the puts of an epoch: more
// than a leader can make. With an epoch of 24 bits the number fits into a signed integer.
const putBits = 39

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

// Recall is as [machine.LeaseStorage] says. A slot without an entry is free.
func (l *LeaseLog) Recall(fn func(slot int, e machine.LeaseEntry)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make(map[int]machine.LeaseEntry)
	last := 0
	limit := attempt / 2
	err := l.rows.attempts.try(l.rows.attempts.ctx, func(ctx context.Context) error {
		limit = min(2*limit, attemptLast)
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		return l.rows.db.Leases(ctx, func(e LeaseEntry) {
			var b [lease.Size]byte
			copy(b[:], e.Entry)
			if entry, ok := lease.Decode(&b); ok {
				found[e.Slot] = entry
			}
			last = max(last, e.Slot)
		})
	})
	if err != nil {
		return fmt.Errorf("read the lease log: %w", err)
	}
	for slot := 1; slot <= last; slot++ {
		entry, ok := found[slot]
		if l.slots.Recall(entry.Token); ok {
			fn(slot, entry)
		}
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
// may be on the server nevertheless. Such an entry stays until its slot has another owner, so
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
	encoded := make([]LeaseEntry, 0, len(p.entries))
	for i := range p.entries {
		if e := &p.entries[i]; l.slots.Owns(e.Slot, e.Token) {
			var b [lease.Size]byte
			used := lease.Encode(&b, &e.LeaseEntry)
			encoded = append(encoded, LeaseEntry{e.Slot, b[:used]})
		}
	}
	l.mu.Unlock()
	if len(encoded) > 0 {
		ctx, stop := context.WithTimeout(l.rows.attempts.ctx, stall.AnswerWithin)
		p.err = l.rows.attempts.try(ctx, func(ctx context.Context) error {
			return l.rows.db.PutLeases(ctx, l.rows.leads.epoch, number, encoded)
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

// Free is as [machine.LeaseStorage] says.
func (l *LeaseLog) Free(slot int, token queue.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.Free(slot, token)
}
