// Package lease has what the lease logs of stores share: the encoding of an entry, which
// slots of the log are taken, and which rows if a row has several entries.
package lease

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// An entry of a lease log is:
//
//	 0  checksum    4 bytes, CRC-32C of all that follows
//	 4  version     1 byte
//	 5  name_size   1 byte, of the worker's name
//	 6  unused      2 bytes
//	 8  id          16 bytes
//	24  seq         8 bytes; all numbers are big-endian
//	32  token       8 bytes
//	40  at          8 bytes, nanoseconds since 1970
//	48  remote      8 bytes, nanoseconds; 0 if the lease ends with the store
//	56  name        200 bytes; a longer name is truncated
//
// An entry with a wrong checksum is ignored. A change of the format increments the version.
// A program omits entries of a version that it does not know: it forgets their leases, as a
// loss of power does.
const (
	atVersion  = 4
	atNameSize = 5
	atID       = 8
	atSeq      = 24
	atToken    = 32
	atTime     = 40
	atRemote   = 48
	atName     = 56
	nameSize   = Size - atName

	entryVersion = 1
)

// Size is the length of an entry in bytes.
const Size = 256

// Encode encodes e, and returns its length without the zeros at its end.
func Encode(b *[Size]byte, e *machine.LeaseEntry) (used int) {
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
	return atName + len(name)
}

// Decode decodes an entry, and reports whether there is one.
func Decode(b *[Size]byte) (e machine.LeaseEntry, ok bool) {
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

// DecodeRow calls fn for the entries of a row, which are one after the other without the zeros
// at their ends. What follows an entry that cannot be decoded is omitted.
func DecodeRow(row []byte, fn func(machine.LeaseEntry)) {
	for len(row) >= atName {
		used := atName + int(row[atNameSize])
		if used > min(len(row), Size) {
			return
		}
		var b [Size]byte
		copy(b[:], row[:used])
		e, ok := Decode(&b)
		if !ok {
			return
		}
		fn(e)
		row = row[used:]
	}
}

func checksum(b *[Size]byte) uint32 {
	return crc32.Checksum(b[atVersion:], crc32.MakeTable(crc32.Castagnoli))
}
