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
// A step does a bounded amount of work, whatever depends on what it changes: see
// pass.go.
//
// The machine reads no clock. A goroutine that it starts ends with the call that
// it was started for, unless the caller left before its rows were written, or very
// many tasks go on because of that call: then drain releases them, and ends. If the
// clock of an earlier process was ahead, another one corrects the rows, and ends.
package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
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
	// Keep is how many bytes of rows are kept in memory, of tasks that wait: as long
	// as they are few, no row is read to start one. It is for rows that take long to
	// read.
	Keep int
	// Room is asked before tasks are accepted, and says why they cannot be, as with
	// a disk that is nearly full; nil if they can. It must be fast.
	Room func() error
	// Stalled returns a channel that is closed while a batch has waited so long, as for
	// room on a disk, that callers are not to wait with it; nil if that is never so. Then
	// Room says why.
	Stalled func() <-chan struct{}
	// SetBack is called with the machine locked, at the first call, if the times in the
	// rows are ahead of it by a second or more; nil if nobody wants to know.
	SetBack func(ahead time.Duration)
	// Damaged is told of tasks that are set aside because their rows cannot be read,
	// with the machine locked; nil if nobody is.
	Damaged func(queue.ID, error)
	// Starts notes the leases that there are; nil if nobody opens the rows again.
	Starts Starts
}

// Machine is a [queue.Store].
type Machine struct {
	cfg     Config
	journal *journal

	reading sync.WaitGroup // those who read rows without the lock; begun with it

	mu           sync.Mutex // guards all below; before the journal's
	closed       bool
	counters     counters
	clock        clock
	tasks        *tasks
	total        total
	keyTotals    keyTotals
	slots        slots
	scheduleSet  scheduleSet
	workerSet    workerSet
	uniqueNames  uniqueNames
	fingerprints fingerprints
	keyRates     keyRates
	watchers     watchers

	passes   passes
	cascades cascades
	deps     dependencies

	leaseLog    leaseLog
	queues      queueSet
	opening     *opening      // nil from the first call on
	opened      uint64        // the mark of what the first call corrects; 0 in a step that does not wait for that
	correcting  chan struct{} // closed when the times of all rows have been corrected; nil if they are not being
	rows        taskRows
	prefetch    prefetch
	states      stateIndex
	settings    settingSet
	transitions transitions
	holds       holds
	views       views
	attempts    attempts
	claims      claimer
	submissions submissions
	finder      finder
	reasons     reasons
	counts      counts
	commands    commands
	maintainer  maintainer
}

var _ queue.Store = (*Machine)(nil)

// begin takes the lock for a step. After an error it has not.
func (m *Machine) begin(ctx context.Context, now time.Time) error {
	first := false // this call, or one that it waits for, is the first one
	for {
		if ctx.Err() != nil { // whoever called does not wait for it
			return gaveUp(ctx, "nothing was done")
		}
		m.mu.Lock()
		if err := m.usable(); err != nil {
			m.mu.Unlock()
			return err
		}
		if m.correcting == nil {
			first = first || m.opening != nil && !now.IsZero()
			m.tick(now)
		}
		corrected := m.correcting
		if corrected == nil {
			m.passes.left, m.opened = visitsPerStep, 0
			if first {
				m.opened = m.journal.mark()
			}
			return nil
		}
		first = true
		m.mu.Unlock()
		select {
		case <-corrected:
		case <-ctx.Done():
		case <-m.stalled():
			return m.unavailable("nothing was done")
		}
	}
}

// usable returns why no step can be made. The lock is held.
func (m *Machine) usable() error {
	if m.closed {
		return queue.ErrClosed
	}
	return m.journal.failed()
}

// beginChange is begin for a step that nobody needs to make while the rows take no
// more: it is refused then, and nothing is half done.
func (m *Machine) beginChange(ctx context.Context, now time.Time) error {
	select {
	case <-m.stalled():
		return m.unavailable("the call was refused")
	default:
		return m.begin(ctx, now)
	}
}

// stalled returns a channel that is closed while the rows take no more.
func (m *Machine) stalled() <-chan struct{} {
	if m.cfg.Stalled == nil {
		return nil
	}
	return m.cfg.Stalled()
}

// unavailable is the error of a call while the rows take no more.
func (m *Machine) unavailable(what string) error {
	if err := m.cfg.Room(); err != nil {
		return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, what, err)
	}
	return fmt.Errorf("%w: %s, because there was no room; there is some again", queue.ErrUnavailable, what)
}

// end ends a step: it gives up the lock, and returns when what has been written is
// durable, when ctx ends, or when the rows take no more.
func (m *Machine) end(ctx context.Context) error {
	err := m.endAt(ctx.Done(), m.stalled())
	switch {
	case errors.Is(err, errLeft):
		return gaveUp(ctx, "what was decided may not be durable yet")
	case errors.Is(err, errStalled):
		return m.unavailable("what was decided is done when there is room, unless this process ends before")
	default:
		return err
	}
}

// gaveUp is the error of a caller who does not wait any longer.
func gaveUp(ctx context.Context, done string) error {
	err := fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, done, ctx.Err())
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// endAt is end, with errLeft when leave is closed, and with errStalled when stalled is.
func (m *Machine) endAt(leave, stalled <-chan struct{}) error {
	mark, over := m.seal(), m.leaseLog.take()
	m.mu.Unlock()
	err := m.journal.sync(mark, leave, stalled)
	if err == nil {
		m.leaseLog.free(over)
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaseLog.over = append(m.leaseLog.over, over...) // for whoever comes next: they are not durable yet
	return err
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// taskRow is the key of a task's row.
func taskRow(id *queue.ID) string { return rowTask + string(id[:]) }

// lockCorrected takes the lock when no times are being corrected.
func (m *Machine) lockCorrected() {
	for m.mu.Lock(); m.correcting != nil; m.mu.Lock() {
		corrected := m.correcting
		m.mu.Unlock()
		<-corrected
	}
}

// Close is as [queue.Store] says.
func (m *Machine) Close() error {
	m.lockCorrected()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.attempts.giveBackAll()
	m.watchers.stop()
	err := m.endAt(nil, nil)
	m.journal.rest()
	m.reading.Wait()
	if closing := m.journal.rows.Close(); err == nil {
		err = closing
	}
	return err
}

// mostScratch is how large a row may have been whose memory is used for the next.
const mostScratch = 16 << 10
