package record

import (
	"encoding/binary"
	"fmt"
)

// reader goes through the fields of a row, or of what is in one of them. The
// first error ends it, so that who reads asks for errors once, at the end; until
// then its methods return zero values.
type reader struct {
	b     []byte // up to where it ends; offsets are those of the row
	at    int    // where the next field begins
	names []string
	err   error
	share bool // bytes are parts of b, and not copies

	// The field that next has found.
	field field
	start int // where it begins
	wire  uint64
	num   uint64 // its value, if it is a number; else the count of bytes
	val   []byte // its value, if it is bytes; a part of b
}

// open makes r a reader of the fields of a row. It is not a function that returns
// one, because copying that takes as long as reading three fields.
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

// inside returns a reader of the fields that are the value of this one.
func (r *reader) inside(names []string) reader {
	val := r.raw()
	return reader{b: r.b[:r.at], at: r.at - len(val), names: names, err: r.err, field: 1}
}

// next goes to the next field, and returns false if there is none, or after an
// error. All of the field is read here, so nothing is to be done to skip it.
func (r *reader) next() bool {
	b := r.b[r.at:]
	if len(b) == 0 || r.err != nil {
		return false
	}
	last := r.field
	r.start = r.at
	if len(b) > 1 && b[0]|b[1] < 1<<7 { // which is how most begin
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

// varints reads the two with which a field begins, and returns how many bytes
// they have: 0 if they are none.
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

// run counts how often this field stands here, one after the other: room for so
// many elements is made at once.
func (r *reader) run() int {
	n := 1
	for ahead := *r; ahead.next() && ahead.field == r.field; {
		n++
	}
	return n
}

// fail ends reading. Only the first failure counts.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: field %s at byte %d: %s",
			ErrCorrupt, r.field.nameIn(r.names), r.start, fmt.Sprintf(format, args...))
	}
}
