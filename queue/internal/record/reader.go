package record

import (
	"encoding/binary"
	"fmt"
)

// reader iterates over the fields of a row or of a repeated field. The first error ends
// the iteration, so that callers check err once, at the end; after an error the methods
// return zero values.
type reader struct {
	b     []byte // the row up to the end of the fields; offsets are those of the row
	at    int    // the offset of the next field
	names []string
	err   error
	share bool // byte values share the memory of b

	// The field that next has read.
	field field
	start int // its offset
	wire  uint64
	num   uint64 // its value if it is a number, otherwise the count of bytes
	val   []byte // its value if it is bytes; a part of b
}

// open makes r a reader of the fields of a row. It does not return a reader, because
// copying one takes as long as reading three fields.
func (r *reader) open(b []byte) {
	r.names, r.field = fieldNames[:], 1
	switch {
	case len(b) == 0:
		r.err = fmt.Errorf("%w: it is empty", ErrCorrupt)
	case b[0] != version:
		r.err = fmt.Errorf("%w: it has version %d, and this program knows %d", ErrVersion, b[0], version)
	case len(b) == 1 || b[len(b)-1] != end:
		r.err = fmt.Errorf("%w: it has been cut short after %d bytes", ErrCorrupt, len(b))
	default:
		r.b, r.at = b[:len(b)-1], 1
	}
}

// inside returns a reader of the fields in the value of the current field.
func (r *reader) inside(names []string) reader {
	val := r.raw()
	return reader{b: r.b[:r.at], at: r.at - len(val), names: names, err: r.err, field: 1}
}

// next reads the next field. It returns false at the end and after an error. It reads the
// whole field, so that the caller can skip one by calling next again.
func (r *reader) next() bool {
	b := r.b[r.at:]
	if len(b) == 0 || r.err != nil {
		return false
	}
	last := r.field
	r.start = r.at
	if len(b) > 1 && b[0]|b[1] < 1<<7 { // the usual case: two varints of one byte
		r.begin(uint64(b[0]), uint64(b[1]), 2)
	} else {
		r.begin(varints(b))
	}
	switch rest := r.b[r.at:]; {
	case r.at == r.start:
		r.fail("it breaks off in a number, or that has more than 64 bits")
	case r.field < last:
		r.fail("it should stand before %s", last.nameIn(r.names))
	case r.wire == wireNumber:
	case r.wire != wireBytes:
		r.fail("there is no wire %d", r.wire)
	case r.num > uint64(len(rest)):
		r.fail("there are %d bytes and not %d", len(rest), r.num)
	default:
		r.val = rest[:r.num]
		r.at += len(r.val)
	}
	return r.err == nil
}

func (r *reader) begin(tag, num uint64, size int) {
	r.field, r.wire, r.num = field(tag>>wireBits), tag&wireMask, num
	r.at += size
}

// varints reads the two varints at the start of a field. size is their length in bytes,
// or 0 if they are invalid.
func varints(b []byte) (tag, num uint64, size int) {
	tag, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, 0, 0
	}
	num, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return 0, 0, 0
	}
	return tag, num, n + m
}

// run counts the consecutive occurrences of the current field, so that the caller can
// allocate all elements at once.
func (r *reader) run() int {
	n := 1
	for ahead := *r; ahead.next() && ahead.field == r.field; {
		n++
	}
	return n
}

// fail ends the iteration with an error. Only the first error is kept.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: field %s at byte %d: %s",
			ErrCorrupt, r.field.nameIn(r.names), r.start, fmt.Sprintf(format, args...))
	}
}
