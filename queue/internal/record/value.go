package record

import (
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// What the value of the field that a reader is at means. A value that is on the
// wrong wire, or not of the type that is asked for, ends reading.

func (r *reader) number() uint64 {
	if r.wire != wireNumber {
		r.fail("it has bytes, and should have a number")
		return 0
	}
	return r.num
}

func (r *reader) signed() int64 { return unfold(r.number()) }

// small returns a number of the types that have eight bits.
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

// int minds that it may have only 32 bits.
func (r *reader) int() int {
	n := r.signed()
	if n != int64(int(n)) {
		r.fail("%d is more than this machine can count", n)
	}
	return int(n)
}

func (r *reader) time() time.Time { return time.Unix(0, r.signed()).UTC() }

// raw returns a part of what is read.
func (r *reader) raw() []byte {
	if r.wire != wireBytes {
		r.fail("it has a number, and should have bytes")
		return nil
	}
	return r.val
}

func (r *reader) text() string { return string(r.raw()) }

// name is text that may be the same as one that is known.
func (r *reader) name(known string) string {
	if v := r.raw(); string(v) != known {
		return string(v)
	}
	return known
}

// bytes returns nil for no bytes, as there would be none in a row.
func (r *reader) bytes() []byte {
	v := r.raw()
	if r.share && len(v) > 0 {
		return slices.Clip(v)
	}
	return append([]byte(nil), v...)
}

// room is for how many elements more there is to be some in a list of steps.
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

// fold puts the sign of a number into its lowest bit, so that small numbers stay
// short whatever their sign.
func fold(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unfold(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// nanos returns t in nanoseconds since 1970, or the nearest that 64 bits hold.
// The result of UnixNano is undefined for times that they do not; these are told
// by not coming back.
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
