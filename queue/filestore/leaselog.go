package filestore

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/lease"
	"github.com/stintgo/stint/queue/internal/machine"
)

const (
	// leaseLogFile is the lease log: a slot for each lease that is alive, and for some that
	// have ended, each of the size and the format of package lease. Its name is that of
	// earlier versions: one that did not find it would give running tasks to other workers.
	leaseLogFile = "stint.starts"
	// growth is the number of slots by which the file grows: 64 KiB.
	growth = 256
	// maxRun is the largest number of slots that one write has: 16 KiB.
	maxRun = 64
)

// leaseLog is [machine.LeaseStorage] in a file. Writes are not synced, so one takes about
// a microsecond: the kernel's memory survives kill -9. After a loss of power any page of
// the file may be old or torn; the machine detects by the rows which entries are void.
//
// Slots are filled with zeros when the file grows, so that a full disk is detected before
// a task starts.
type leaseLog struct {
	path string

	// writing is held while entries are written, one claim after the other: so of two
	// entries of the same slot, the later one stays. It comes before mu in the lock order.
	// The machine locks mu with its own lock held, and waits for the disk there only when
	// the file grows.
	writing sync.Mutex
	run     [maxRun * lease.Size]byte // guarded by writing

	mu    sync.Mutex // guards the fields below
	file  vfs.File   // nil after close, which holds both locks
	slots lease.Slots
}

var _ machine.LeaseStorage = (*leaseLog)(nil)

func openLeaseLog(fs vfs.FS, dir string) (*leaseLog, error) {
	path := fs.PathJoin(dir, leaseLogFile)
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &leaseLog{path: path, file: f}, nil
}

// Recall is as [machine.LeaseStorage] says.
func (l *leaseLog) Recall(fn func(slot int, e machine.LeaseEntry)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	content := (*[lease.Size]byte)(l.run[:])
	for {
		_, err := l.file.ReadAt(content[:], int64(l.slots.Len())*lease.Size)
		if errors.Is(err, io.EOF) {
			return nil // a remainder is shorter than a slot; the next growth overwrites it
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", l.path, err)
		}
		entry, ok := lease.Decode(content)
		if slot := l.slots.Recall(entry.Token); ok {
			fn(slot, entry)
		}
	}
}

// Reserve is as [machine.LeaseStorage] says.
func (l *leaseLog) Reserve(token queue.Token) (slot int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot, ok := l.slots.Reserve(token)
	if !ok {
		if err := l.grow(); err != nil {
			return 0, l.unrecorded(err)
		}
		slot, _ = l.slots.Reserve(token)
	}
	return slot, nil
}

// grow appends free slots to the file.
func (l *leaseLog) grow() error {
	if l.file == nil {
		return queue.ErrClosed
	}
	if _, err := l.file.WriteAt(make([]byte, growth*lease.Size), int64(l.slots.Len())*lease.Size); err != nil {
		return err
	}
	l.slots.Grow(growth)
	return nil
}

// Put is as [machine.LeaseStorage] says. Entries of neighbouring slots are written at once.
// Those are most entries of a claim, because the lowest free slot is reserved first.
func (l *leaseLog) Put(entries []machine.SlotEntry) (n int, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	for n < len(entries) {
		written, err := l.write(entries[n:])
		if n += written; err != nil {
			return n, l.unrecorded(err)
		}
	}
	return n, nil
}

// Sync returns when all entries survive a loss of power.
func (l *leaseLog) Sync() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.file.Sync()
}

// write writes the first of some entries together with those that follow in neighbouring
// slots, or omits it if its lease has ended. It returns the number of entries that are
// done.
func (l *leaseLog) write(entries []machine.SlotEntry) (n int, err error) {
	size := l.neighbours(entries)
	if size == 0 {
		return 1, nil // the lease has ended, and the slot may have another owner
	}
	if l.file == nil {
		return 0, queue.ErrClosed
	}
	b := l.run[:size*lease.Size]
	for i := range size {
		lease.Encode((*[lease.Size]byte)(b[i*lease.Size:]), &entries[i].LeaseEntry)
	}
	written, err := l.file.WriteAt(b, int64(entries[0].Slot-1)*lease.Size)
	return written / lease.Size, err
}

// neighbours returns how many of the first entries own neighbouring slots.
func (l *leaseLog) neighbours(entries []machine.SlotEntry) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for most := min(len(entries), maxRun); n < most; n++ {
		if slot := entries[n].Slot; slot != entries[0].Slot+n || !l.slots.Owns(slot, entries[n].Token) {
			break
		}
	}
	return n
}

// unrecorded returns the error of a lease that cannot be recorded, so that its task must
// not start: such a task could crash the process again and again, or run twice at a time,
// without a trace.
func (l *leaseLog) unrecorded(err error) error {
	return fmt.Errorf("no task starts, because its lease cannot be recorded in %s: make room on the disk, or check it: %w",
		l.path, brief(err))
}

// Free is as [machine.LeaseStorage] says. The entry stays in the file: the task's row,
// which is durable by now, shows that the lease has ended.
func (l *leaseLog) Free(slot int, token queue.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.Free(slot, token)
}

func (l *leaseLog) close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.file.Close()
	l.file = nil
	return err
}
