package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// leaseLogFile is the lease log: a slot for each lease that is alive, and for some that
// have ended. A slot is:
//
//	 0  checksum    4 bytes, CRC-32C of all that follows
//	 4  version     1 byte
//	 5  name_size   1 byte, of the worker's name
//	 6  unused      2 bytes
//	 8  id          16 bytes
//	24  seq         8 bytes; all numbers are big-endian
//	32  token       8 bytes
//	40  at          8 bytes, nanoseconds since 1970
//	48  remote      8 bytes, nanoseconds; 0 if the lease ends with this process
//	56  name        200 bytes; a longer name is truncated
//
// A slot with a wrong checksum is empty. A change of the format of a slot increments its
// version. Slots of a version that a program does not know are empty to it: it forgets
// their leases, as a loss of power does.
const (
	leaseLogFile = "stint.starts"

	atVersion  = 4
	atNameSize = 5
	atID       = 8
	atSeq      = 24
	atToken    = 32
	atTime     = 40
	atRemote   = 48
	atName     = 56
	slotSize   = 256
	nameSize   = slotSize - atName

	entryVersion = 1
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
	run     [maxRun * slotSize]byte // guarded by writing

	mu     sync.Mutex    // guards the fields below
	file   vfs.File      // nil after close, which holds both locks
	owners []queue.Token // by slot, from 1; 0: the slot is free
	free   freeSlots
}

var _ machine.LeaseStorage = (*leaseLog)(nil)

func openLeaseLog(fs vfs.FS, dir string) (*leaseLog, error) {
	path := fs.PathJoin(dir, leaseLogFile)
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &leaseLog{path: path, file: f, owners: make([]queue.Token, 1)}, nil
}

// Recall is as [machine.LeaseStorage] says.
func (l *leaseLog) Recall(fn func(slot int, e machine.LeaseEntry)) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	content := (*[slotSize]byte)(l.run[:])
	for {
		_, err := l.file.ReadAt(content[:], int64(len(l.owners)-1)*slotSize)
		if errors.Is(err, io.EOF) {
			return nil // a remainder is shorter than a slot; the next growth overwrites it
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", l.path, err)
		}
		slot := len(l.owners)
		entry, ok := decodeEntry(content)
		if l.owners = append(l.owners, entry.Token); ok {
			fn(slot, entry)
		} else {
			l.free.add(slot)
		}
	}
}

// Reserve is as [machine.LeaseStorage] says.
func (l *leaseLog) Reserve(token queue.Token) (slot int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot, ok := l.free.take()
	if !ok {
		if err := l.grow(); err != nil {
			return 0, l.unrecorded(err)
		}
		slot, _ = l.free.take()
	}
	l.owners[slot] = token
	return slot, nil
}

// grow appends free slots to the file.
func (l *leaseLog) grow() error {
	if l.file == nil {
		return queue.ErrClosed
	}
	from := len(l.owners)
	if _, err := l.file.WriteAt(make([]byte, growth*slotSize), int64(from-1)*slotSize); err != nil {
		return err
	}
	l.owners = append(l.owners, make([]queue.Token, growth)...)
	for slot := range l.owners[from:] {
		l.free.add(from + slot)
	}
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
	b := l.run[:size*slotSize]
	for i := range size {
		encodeEntry((*[slotSize]byte)(b[i*slotSize:]), &entries[i].LeaseEntry)
	}
	written, err := l.file.WriteAt(b, int64(entries[0].Slot-1)*slotSize)
	return written / slotSize, err
}

// neighbours returns how many of the first entries own neighbouring slots.
func (l *leaseLog) neighbours(entries []machine.SlotEntry) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for most := min(len(entries), maxRun); n < most; n++ {
		if slot := entries[n].Slot; slot != entries[0].Slot+n || l.owners[slot] != entries[n].Token {
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
	if l.owners[slot] == token {
		l.owners[slot] = 0
		l.free.add(slot)
	}
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

func encodeEntry(b *[slotSize]byte, e *machine.LeaseEntry) {
	clear(b[:])
	name := e.Worker
	if len(name) > nameSize {
		name = strings.ToValidUTF8(name[:nameSize], "")
	}
	b[atVersion], b[atNameSize] = entryVersion, byte(len(name))
	copy(b[atID:atSeq], e.ID[:])
	binary.BigEndian.PutUint64(b[atSeq:], e.Seq)
	binary.BigEndian.PutUint64(b[atToken:], uint64(e.Token))
	binary.BigEndian.PutUint64(b[atTime:], uint64(e.At.UnixNano()))
	binary.BigEndian.PutUint64(b[atRemote:], uint64(e.Remote))
	copy(b[atName:], name)
	binary.BigEndian.PutUint32(b[:], checksum(b))
}

// decodeEntry decodes a slot, and reports whether it has an entry.
func decodeEntry(b *[slotSize]byte) (e machine.LeaseEntry, ok bool) {
	token := queue.Token(binary.BigEndian.Uint64(b[atToken:]))
	if binary.BigEndian.Uint32(b[:]) != checksum(b) || b[atVersion] != entryVersion ||
		int(b[atNameSize]) > nameSize || token == 0 {
		return e, false
	}
	return machine.LeaseEntry{
		ID:     queue.ID(b[atID:atSeq]),
		Seq:    binary.BigEndian.Uint64(b[atSeq:]),
		Token:  token,
		At:     time.Unix(0, int64(binary.BigEndian.Uint64(b[atTime:]))).UTC(),
		Worker: string(b[atName : atName+int(b[atNameSize])]),
		Remote: time.Duration(binary.BigEndian.Uint64(b[atRemote:])),
	}, true
}

func checksum(b *[slotSize]byte) uint32 {
	return crc32.Checksum(b[atVersion:], crc32.MakeTable(crc32.Castagnoli))
}
