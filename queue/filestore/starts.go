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

// startsFile has a place for each lease that there is, and for some that there
// were. A place is:
//
//	 0  checksum    4 bytes, CRC-32C of all that follows
//	 4  version     1 byte
//	 5  name_size   1 byte, of the worker's name
//	 6  unused      2 bytes
//	 8  id          16 bytes
//	24  seq         8 bytes, as all numbers the highest byte first
//	32  token       8 bytes
//	40  at          8 bytes, nanoseconds since 1970
//	48  remote      8 bytes, nanoseconds; 0 if the lease ends with this process
//	56  name        200 bytes; what is longer is cut
//
// Whatever does not have its checksum is an empty place. A change of what a place
// means gives it another version: those that a program does not know are empty to
// it, which forgets leases as a loss of power does.
const (
	startsFile = "stint.starts"

	atVersion  = 4
	atNameSize = 5
	atID       = 8
	atSeq      = 24
	atToken    = 32
	atTime     = 40
	atRemote   = 48
	atName     = 56
	placeSize  = 256
	nameSize   = placeSize - atName

	startVersion = 1
	// growth is by how many places the file grows: 64 KiB.
	growth = 256
	// runMost is how many places are written at once: 16 KiB.
	runMost = 64
)

// starts is that file. It is written and not synced, which costs a microsecond:
// what is in the memory of the kernel survives kill -9. After a loss of power any
// page of it may be as it was before, or torn; the machine decides by the rows which
// places are no longer true.
//
// Places are filled with zeros when the file grows, so that a disk which is full
// is met before a task starts, and not afterwards.
type starts struct {
	path string

	// writing is held while starts are written, one claim after the other: so of two
	// that had the same place, the later one stays. It comes before mu, which the
	// machine waits for with its own lock held, and for the disk only when the file
	// grows.
	writing sync.Mutex
	run     [runMost * placeSize]byte // guarded by writing

	mu     sync.Mutex    // guards all below
	file   vfs.File      // nil after close, which holds both
	owners []queue.Token // by place, from 1; 0: the place is free
	free   places
}

var _ machine.Starts = (*starts)(nil)

func openStarts(fs vfs.FS, dir string) (*starts, error) {
	path := fs.PathJoin(dir, startsFile)
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &starts{path: path, file: f, owners: make([]queue.Token, 1)}, nil
}

// Recall is as [machine.Starts] says.
func (s *starts) Recall(fn func(place int, start machine.Start)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	place := (*[placeSize]byte)(s.run[:])
	for {
		_, err := s.file.ReadAt(place[:], int64(len(s.owners)-1)*placeSize)
		if errors.Is(err, io.EOF) {
			return nil // what is left is less than a place, and the file grows over it
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", s.path, err)
		}
		number := len(s.owners)
		start, ok := decodeStart(place)
		if s.owners = append(s.owners, start.Token); ok {
			fn(number, start)
		} else {
			s.free.give(number)
		}
	}
}

// Reserve is as [machine.Starts] says.
func (s *starts) Reserve(token queue.Token) (place int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, ok := s.free.take()
	if !ok {
		if err := s.grow(); err != nil {
			return 0, s.cannot(err)
		}
		place, _ = s.free.take()
	}
	s.owners[place] = token
	return place, nil
}

// grow makes places.
func (s *starts) grow() error {
	if s.file == nil {
		return queue.ErrClosed
	}
	from := len(s.owners)
	if _, err := s.file.WriteAt(make([]byte, growth*placeSize), int64(from-1)*placeSize); err != nil {
		return err
	}
	s.owners = append(s.owners, make([]queue.Token, growth)...)
	for place := range s.owners[from:] {
		s.free.give(from + place)
	}
	return nil
}

// Put is as [machine.Starts] says. Neighbours are written at once: of a claim that
// is nearly all of them, since the lowest place that is free is reserved first.
func (s *starts) Put(starts []machine.Noted) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for n < len(starts) {
		written, err := s.write(starts[n:])
		if n += written; err != nil {
			return n, s.cannot(err)
		}
	}
	return n, nil
}

// write writes the first of some starts, with those that follow in its neighbours,
// or leaves it out, and returns how many it is done with.
func (s *starts) write(starts []machine.Noted) (n int, err error) {
	size := s.neighbours(starts)
	if size == 0 {
		return 1, nil // the lease is over already, and the place may be another's
	}
	if s.file == nil {
		return 0, queue.ErrClosed
	}
	b := s.run[:size*placeSize]
	for i := range size {
		encodeStart((*[placeSize]byte)(b[i*placeSize:]), &starts[i].Start)
	}
	written, err := s.file.WriteAt(b, int64(starts[0].Place-1)*placeSize)
	return written / placeSize, err
}

// neighbours counts those that have their places still, one beside the other.
func (s *starts) neighbours(starts []machine.Noted) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for most := min(len(starts), runMost); n < most; n++ {
		if place := starts[n].Place; place != starts[0].Place+n || s.owners[place] != starts[n].Token {
			break
		}
	}
	return n
}

// cannot says that no task can start. One whose start is not noted could crash the
// process again and again, or run twice at a time, and nothing would show it.
func (s *starts) cannot(err error) error {
	return fmt.Errorf("the start of a task cannot be noted in %s: make room on the disk, or look after it: %w",
		s.path, brief(err))
}

// Free is as [machine.Starts] says. What is noted stays: the task's row, which is
// durable by now, has the token too.
func (s *starts) Free(place int, token queue.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[place] == token {
		s.owners[place] = 0
		s.free.give(place)
	}
}

func (s *starts) close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.file.Close()
	s.file = nil
	return err
}

func encodeStart(b *[placeSize]byte, s *machine.Start) {
	clear(b[:])
	name := s.Worker
	if len(name) > nameSize {
		name = strings.ToValidUTF8(name[:nameSize], "")
	}
	b[atVersion], b[atNameSize] = startVersion, byte(len(name))
	copy(b[atID:atSeq], s.ID[:])
	binary.BigEndian.PutUint64(b[atSeq:], s.Seq)
	binary.BigEndian.PutUint64(b[atToken:], uint64(s.Token))
	binary.BigEndian.PutUint64(b[atTime:], uint64(s.At.UnixNano()))
	binary.BigEndian.PutUint64(b[atRemote:], uint64(s.Remote))
	copy(b[atName:], name)
	binary.BigEndian.PutUint32(b[:], startSum(b))
}

// decodeStart reads a place, and reports whether there is anything in it.
func decodeStart(b *[placeSize]byte) (s machine.Start, ok bool) {
	token := queue.Token(binary.BigEndian.Uint64(b[atToken:]))
	if binary.BigEndian.Uint32(b[:]) != startSum(b) || b[atVersion] != startVersion ||
		int(b[atNameSize]) > nameSize || token == 0 {
		return s, false
	}
	return machine.Start{
		ID:     queue.ID(b[atID:atSeq]),
		Seq:    binary.BigEndian.Uint64(b[atSeq:]),
		Token:  token,
		At:     time.Unix(0, int64(binary.BigEndian.Uint64(b[atTime:]))).UTC(),
		Worker: string(b[atName : atName+int(b[atNameSize])]),
		Remote: time.Duration(binary.BigEndian.Uint64(b[atRemote:])),
	}, true
}

func startSum(b *[placeSize]byte) uint32 {
	return crc32.Checksum(b[atVersion:], crc32.MakeTable(crc32.Castagnoli))
}
