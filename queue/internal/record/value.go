package record

import (
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// The following methods return the value of the current field as a type. They fail if the
// wire type is wrong or the value is out of range.

func (r *reader) number() uint64 {
	if r.wire != wireNumber {
		r.fail("it has bytes, and should have a number")
		return 0
	}
	return r.num
}

func (r *reader) signed() int64 { return unzigzag(r.number()) }

// small returns a number of an unsigned type of 8 bits.
func (r *reader) small() uint8 {
	n := r.number()
	if n > math.MaxUint8 {
		r.fail("%d is more than 8 bits", n)
	}
	return uint8(n)
}

func (r *reader) tiny() int8 {
	n := r.signed()
	if n != int64(int8(n)) {
		r.fail("%d is more than 8 bits", n)
	}
	return int8(n)
}

// int returns a signed number. It fails if the number exceeds an int of 32 bits on such a
// machine.
func (r *reader) int() int {
	n := r.signed()
	if n != int64(int(n)) {
		r.fail("%d is more than this machine can count", n)
	}
	return int(n)
}

func (r *reader) time() time.Time { return time.Unix(0, r.signed()).UTC() }

// raw returns the bytes of the value, which share the memory of the row.
func (r *reader) raw() []byte {
	if r.wire != wireBytes {
		r.fail("it has a number, and should have bytes")
		return nil
	}
	return r.val
}

func (r *reader) text() string { return string(r.raw()) }

// name returns known if it equals the text, to avoid an allocation.
func (r *reader) name(known string) string {
	if v := r.raw(); string(v) != known {
		return string(v)
	}
	return known
}

// bytes returns nil for an empty value, because a row omits empty fields.
func (r *reader) bytes() []byte {
	v := r.raw()
	if r.share && len(v) > 0 {
		return slices.Clip(v)
	}
	return append([]byte(nil), v...)
}

// room returns the spare capacity of a list of steps.
func (r *reader) room() int {
	if r.share {
		return 2
	}
	return 0
}

func (r *reader) id() queue.ID {
	v := r.raw()
	if len(v) != len(queue.ID{}) {
		r.fail("an ID has %d bytes, and not %d", len(queue.ID{}), len(v))
		return queue.ID{}
	}
	return queue.ID(v)
}

func (r *reader) ids() []queue.ID {
	const size = len(queue.ID{})
	v := r.raw()
	if len(v)%size != 0 {
		r.fail("IDs have %d bytes each, and these %d in all", size, len(v))
		return nil
	}
	var ids []queue.ID
	if len(v) > 0 {
		ids = make([]queue.ID, len(v)/size)
	}
	for i := range ids {
		copy(ids[i][:], v[i*size:])
	}
	return ids
}

// zigzag moves the sign of a number into the lowest bit, so that numbers with a small
// absolute value have short varints.
func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// nanos returns t in nanoseconds since 1970, or the nearest value that 64 bits hold. The
// result of UnixNano is undefined for times outside that range; nanos detects them by the
// conversion back.
func nanos(t time.Time) int64 {
	ns := t.UnixNano()
	switch {
	case time.Unix(0, ns).Equal(t):
		return ns
	case t.Unix() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
